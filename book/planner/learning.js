function planLearning() { return { paint() {} }; }

// Searches off the page's own thread: a worker that is made of the same functions, or slices of time where there is none.

function planWorker(functions, data, text) {
  const source = () => `${functions.map((f) => f.toString()).join("\n")}
    self.onmessage = ({ data: text }) => (${serve.toString()})(planTasks(planCases(planEngine(JSON.parse(text)))), self);`;
  // What is asked last counts: of each kind of question only the newest is answered to its end.
  function serve(searching, port) {
    const newest = {};
    port.onmessage = async ({ data: { id, kind, plan, chosen } }) => {
      newest[kind] = id;
      let told = 0;
      if (kind === "stop") { for (const x of Object.keys(newest)) newest[x] = id; return; }
      const { port1, port2 } = new MessageChannel(), turn = () => new Promise((resolve) => { port1.onmessage = resolve; port2.postMessage(0); }); // a timeout waits for 4 ms
      await turn();
      try {
        if (newest[kind] !== id) return;
        if (kind === "neighbours") {
          port.postMessage({ id, done: true, rows: searching.neighbours(plan, searching.space(plan), chosen, plan.job === "serve") });
          return;
        }
        if (kind === "pools" || (kind === "beside" && plan.pools)) { port.postMessage({ id, done: true, rows: searching.pools(plan) }); return; }
        const running = (searching[kind] ?? searching.search)(plan, ...(kind === "assumed" || kind === "changes" ? [chosen] : []));
        for (;;) {
          const { value: { space, layouts, ...value }, done } = running.next();
          if (done || value.isSearched || Date.now() - told > 80) { told = Date.now(); port.postMessage({ id, done, value }); }
          if (done) return;
          await turn();
          if (newest[kind] !== id) return;
        }
      } catch (error) { port.postMessage({ id, done: true, error: error.message }); }
    };
  }
  let port, next = 0; // a worker is asked for at once: it starts while the page is made
  const waiting = new Map();
  const heard = ({ data: said }) => {
    const one = waiting.get(said.id);
    if (!one) return;
    if (!said.done) { one.progress?.(said.value); return; }
    waiting.delete(said.id);
    if (said.error) one.fail(new Error(said.error));
    else one.resolve(said.rows ?? said.value);
  };
  function start() {
    try {
      const made = new Worker(URL.createObjectURL(new Blob([source()], { type: "text/javascript" })));
      made.onmessage = heard;
      made.postMessage(text);
      return made;
    } catch { // where a page may have no worker
      const own = { postMessage: (said) => setTimeout(() => heard({ data: said })) };
      serve(planTasks(planCases(planEngine(data))), own);
      return { postMessage: (said) => own.onmessage({ data: said }), terminate() {} };
    }
  }
  const ask = (kind, said, progress) => new Promise((resolve, fail) => {
    waiting.set(++next, { resolve, fail, progress });
    port.postMessage({ id: next, kind, ...said });
  });
  port = start();
  return { ask, stop: () => port?.postMessage({ id: ++next, kind: "stop" }), close: () => { port?.terminate(); port = undefined; } };
}

// What a worker is asked for.
function planTasks(cases) {
  const searching = planSearch(cases);
  return { ...searching, assumed: planAssumed(cases), changes: planChanges(cases, searching), market: planMarket(cases, searching), agents: planSessions(cases).agents, updates: cases.updating.updates };
}

// What JupyterLab holds of the notebook in front, once its kernel has said which it is, and what the kernel said.
async () => {
  const { context, sessionContext } = jupyterapp.shell.currentWidget;
  await sessionContext.ready;
  const { kernel } = sessionContext.session, [{ language_info }] = [await kernel.info, await kernel.spec];
  await new Promise((done) => setTimeout(done)); // what else waits for these has had its turn
  return { kernel: language_info, notebook: context.model.getMetadata("language_info"), unsaved: context.model.dirty };
}

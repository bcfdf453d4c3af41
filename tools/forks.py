"""A pytest plugin: `pytest --forks 3` collects the tests once and runs them in three processes forked from there.

Each worker begins with every import, table and confrontation of the process that collected, so that nothing is
prepared twice.  A worker takes a batch at a time: the tests of one file, or those with the same `part`.  In the end the
batches that took most processor time are named.  Where the system cannot fork, this process runs all tests.
"""

import gc
import os
import traceback
from multiprocessing import connection, get_context

import pytest

__all__ = ["batches"]

DEAREST = 20  # batches that are named in the end


def pytest_addoption(parser):
    parser.addoption("--forks", type=int, default=0, help="run the tests in so many forked processes")


def pytest_configure(config):
    if config.getoption("forks") and hasattr(os, "fork"):
        config.pluginmanager.register(Forks(config.getoption("forks")), "forks")


def batches(items):
    """The items by file, in their order; an item with an attribute `part` by that."""
    found = {}
    for item in items:
        found.setdefault(getattr(item, "part", item.nodeid.partition("::")[0]), []).append(item)
    return [*found.values()]


class Forks:
    """The loop of the process that collects: it hands out batches and passes on what the workers report."""

    def __init__(self, number):
        self.number, self.todo, self.costs = number, [], {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.config.option.collectonly or not session.items:
            return None
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        todo = self.todo = batches(session.items)
        gc.collect()
        gc.freeze()  # so that a worker's own collections leave the shared memory alone
        gc.set_threshold(50_000, 20, 100)  # expressions seldom form cycles: fewer collections save 3 %
        context, links, workers = get_context("fork"), {}, []
        for _ in range(min(self.number, len(todo))):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(session, todo, theirs, [ours, *links]))
            worker.start()
            theirs.close()
            links[ours] = ""
            workers.append(worker)
        try:
            self._listen(session, links, iter(range(len(todo))))
        except BaseException:
            for worker in workers:
                worker.terminate()
            raise
        finally:
            for worker in workers:
                worker.join()
        return True

    def _listen(self, session, links, places):
        """Answer the workers until each has ended; `links` remembers the test that each one runs."""
        hook, config = session.config.hook, session.config
        while links:
            for link in connection.wait(list(links)):
                try:
                    kind, said = link.recv()
                except EOFError:
                    session.shouldfail = f"a worker died in {links[link]}"
                    break
                if kind == "next":
                    link.send(next(places, None))
                elif kind == "begins":
                    links[link] = said
                elif kind == "cost":
                    self.costs.update([said])
                elif kind == "report":
                    report = hook.pytest_report_from_serializable(config=config, data=said)
                    hook.pytest_runtest_logreport(report=report)
                    if report.when == "teardown":
                        hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
                else:
                    last = links.pop(link)
                    session.shouldfail = session.shouldfail or (said and f"a worker ended after {last}:\n{said}")
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)

    def pytest_terminal_summary(self, terminalreporter):
        """Name the dearest batches by processor time, of which processes that a test leaves running are no part."""
        terminalreporter.section(f"{sum(self.costs.values()):.0f} s of processors, most of them for")
        for place, seconds in sorted(self.costs.items(), key=lambda x: -x[1])[:DEAREST]:
            first = self.todo[place][0]
            terminalreporter.write_line(f"{seconds:7.1f} s  {getattr(first, 'part', first.nodeid.partition('::')[0])}")


class Sender:
    """In a worker: what its tests report goes to the process that collected."""

    def __init__(self, config, link):
        self.config, self.link = config, link

    def pytest_runtest_logstart(self, nodeid):
        self.link.send(("begins", nodeid))

    def pytest_runtest_logreport(self, report):
        said = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.link.send(("report", said))


class Elsewhere:
    """What follows a batch: something that shares the session's fixtures with it and no others."""

    def __init__(self, session):
        self.session = session

    def listchain(self):
        return [self.session]


def _work(session, todo, link, others):
    """Run batches until there are no more, and send what they report."""
    for other in others:  # of which this process inherited a copy: the end of another worker would not be seen
        other.close()
    config, said = session.config, ""
    _write_alone(config)
    config.pluginmanager.register(Sender(config, link))
    try:
        while (place := _asked(link)) is not None:
            items, before = todo[place], sum(os.times()[:4])
            for item, following in zip(items, [*items[1:], Elsewhere(session)], strict=True):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            link.send(("cost", (place, sum(os.times()[:4]) - before)))
        session._setupstate.teardown_exact(None)
    except BaseException:
        said = traceback.format_exc()
    link.send(("ends", said))


def _asked(link):
    link.send(("next", None))
    return link.recv()


def _write_alone(config):
    """Leave the terminal to the process that collected, and capture output in files of this worker's own."""
    config.pluginmanager.unregister(name="terminalreporter")
    if capture := config.pluginmanager.getplugin("capturemanager"):
        capture.stop_global_capturing()
        capture.start_global_capturing()

"""One test over many things, where each takes less than the milliseconds that pytest spends on a test of its own."""


def every(things, name=str):
    """The test that a check holds of each of these: all are tried, and those that fail are named.

    A tuple is several arguments; what takes long to make is given as a function, which the test alone calls.
    """
    given = things if callable(things) else list(things)

    def decorate(check):
        def test():
            several = list(given() if callable(given) else given)
            assert several, "there is nothing to check"
            wrong = []
            for thing in several:
                try:
                    check(*thing) if type(thing) is tuple else check(thing)
                except Exception as error:
                    error.add_note(f"with {name(thing)}")
                    wrong.append(error)
            if wrong:
                names = ", ".join(x.__notes__[-1].removeprefix("with ") for x in wrong)
                raise ExceptionGroup(f"{len(wrong)} of {len(several)} fail: {names}", wrong)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate

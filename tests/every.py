"""One test over many things, where each takes less than the milliseconds that pytest spends on a test of its own."""


def every(things, name=str):
    """The test that a check holds of each of these: all are tried, and those that fail are named.

    A tuple is several arguments; what takes long to make is given as a function, which the test alone calls.
    `pytest -k NAME` selects the test if one of the things is called so, and then tries those alone.
    """
    given = things if callable(things) else list(things)

    def decorate(check):
        def test(request):
            several = list(given() if callable(given) else given)
            assert several, "there is nothing to check"
            wrong = []
            for thing in asked(several, name, request):
                try:
                    check(*thing) if type(thing) is tuple else check(thing)
                except Exception as error:
                    error.add_note(f"with {name(thing)}")
                    wrong.append(error)
            if wrong:
                names = ", ".join(x.__notes__[-1].removeprefix("with ") for x in wrong)
                raise ExceptionGroup(f"{len(wrong)} of {len(several)} fail: {names}", wrong)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        if not callable(given):
            vars(test).update({name(x): True for x in given if not name(x).startswith("_")})  # `-k` knows attributes
        return test

    return decorate


def asked(things, name, request):
    """The things that `-k` names, or all of them if it names none, or the test or its file."""
    words = [x for x in request.config.getoption("keyword").lower().split() if x not in ("or", "and")]
    if "not" in words or any(x.strip("()") in request.node.nodeid.lower() for x in words):
        return things
    return [x for x in things if any(word.strip("()") in name(x).lower() for word in words)] or things

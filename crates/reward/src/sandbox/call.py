def _burnish_call():
    """Returns the result in a list, or None without a result; writes errors to stderr, as verl's wrapper does."""
    name = "FUNCTION_NAME"
    lines = sys.stdin.read()
    try:
        arguments = [json.loads(line) for line in lines.split("\n")] if lines.strip() else []
    except json.JSONDecodeError as error:
        sys.stderr.write("the input of %s is not JSON: %s\n" % (name, error))
        return []
    try:
        function = globals().get(name)
        if name not in globals() and "Solution" in globals():
            function = getattr(globals()["Solution"](), name)
        if not function:
            sys.stderr.write("there is no function %s\n" % name)
            return []
        return [function(*arguments)]
    except Exception:
        sys.stderr.write(traceback.format_exc())
        return []


if __name__ == "__main__":
    for _burnish_result in _burnish_call():
        if _burnish_result is None or isinstance(_burnish_result, (bool, dict, list, tuple)):
            print(json.dumps(_burnish_result))
        else:
            print(str(_burnish_result))

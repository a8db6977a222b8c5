"""A calculator as a function tool of verl."""

from verl.tools.function_tool import function_tool


@function_tool
def calculator(expression: str) -> str:
    """Works out an arithmetic expression.

    Args:
        expression: What to work out
    """
    return str(eval(expression, {"__builtins__": {}}))

# Loads the functions of a program that trains: its imports, functions, classes and constants, without the training.

import ast
import builtins


class AbsentObject:
    """Replaces an object of a package that is not installed; a use of it is an error with the name of the package."""

    def __init__(self, name, error):
        self._name, self._error = name, error

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentObject("%s.%s" % (self._name, name), self._error)

    def __call__(self, *given, **named):
        raise ImportError("%s cannot be used: %s" % (self._name, self._error))

    def __getitem__(self, item):
        return self

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases):
        return ()


# Modules whose functions a constant may call.
PLAIN_MODULES = {"re", "os", "math", "json", "string", "random", "pathlib", "collections", "functools", "itertools", "datetime"}
PROGRAM_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def is_program(tree):
    """Returns true if the top of a file builds a trainer, so that importing the file would train."""

    def builds(node):
        called = getattr(node, "func", None)
        return isinstance(node, ast.Call) and str(getattr(called, "attr", getattr(called, "id", ""))).endswith("Trainer")

    try:
        return any(builds(node) for statement in import_statements(tree.body) for node in walk_at_import(statement))
    except RecursionError:
        return False


def import_statements(statements):
    """Returns the statements that run at an import."""
    for statement in statements:
        if isinstance(statement, ast.If) and "__name__" in names_used([statement.test]):
            continue
        yield statement


def walk_at_import(node):
    """Walks the parts of a statement that run with it, not the bodies of functions and classes."""
    if isinstance(node, PROGRAM_DEFINITIONS) or isinstance(node, ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from walk_at_import(child)


def is_program_constant(statement):
    """Returns true for an assignment that calls nothing but built-in functions and functions of plain modules."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or statement.value is None:
        return False

    def is_plain(called):
        while isinstance(called, ast.Attribute):
            called = called.value
        if isinstance(called, ast.Name):
            return called.id in PLAIN_MODULES or hasattr(builtins, called.id) and called.id not in ("open", "exec", "eval", "input")
        return isinstance(called, (ast.Constant, ast.JoinedStr))

    return all(is_plain(node.func) for node in ast.walk(statement.value) if isinstance(node, ast.Call))


def names_used(nodes):
    return {node.id for kept in nodes for node in ast.walk(kept) if isinstance(node, ast.Name)}


def run_definitions(tree, path, contents):
    """Runs the imports, functions, classes and constants of a program in `contents`."""
    kept = [statement for statement in import_statements(tree.body) if isinstance(statement, PROGRAM_DEFINITIONS) or is_program_constant(statement)]
    used = names_used(kept)
    for statement in import_statements(tree.body):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            run_program_imports(statement, path, contents, used)
        elif statement in kept:
            code = compile(ast.Module([statement], []), path, "exec")
            if isinstance(statement, PROGRAM_DEFINITIONS):
                exec(code, contents)
                continue
            try:
                exec(code, contents)
            except Exception:
                pass  # It needs a value that only the program computes; a function that reads the constant reports it.


def run_program_imports(statement, path, contents, used):
    """Runs the parts of an import whose names are used."""
    for alias in statement.names:
        bound = alias.asname or alias.name.split(".")[0]
        if alias.name != "*" and bound not in used:
            continue
        one = ast.copy_location(
            ast.Import([alias])
            if isinstance(statement, ast.Import)
            else ast.ImportFrom(statement.module, [alias], statement.level),
            statement,
        )
        try:
            exec(compile(ast.Module([one], []), path, "exec"), contents)
        except ImportError as error:
            contents[bound] = AbsentObject(bound, error)

"""Strings of Python source that are put together from literals alone, read without running it."""
import ast


def value(node, names):
    """What an expression is; ValueError where that is not known without running it."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.JoinedStr):
        return "".join(str(value(part.value if isinstance(part, ast.FormattedValue) else part, names)) for part in node.values)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [value(item, names) for item in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return value(node.left, names) + value(node.right, names)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return value(node.left, names) * value(node.right, names)
    raise ValueError(ast.dump(node)[:60])


def assigned(body, names):
    """The names that a body gives to known values."""
    known = dict(names)
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) and node.value else []
        for target in targets:
            if isinstance(target, ast.Name):
                try:
                    known[target.id] = value(node.value, known)
                except (ValueError, TypeError):
                    pass
    return known


def classes(path):
    """(name, names of its bases, its known attributes, node) of each class in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = assigned(tree.body, {})
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            yield node.name, bases, assigned(node.body, names), node


def strings(node):
    """All literal strings in a part of a file."""
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef)) and (text := ast.get_docstring(node)):
            yield text


def spread(items, count):
    """So many of the items, at even steps."""
    items = list(items)
    return items if len(items) <= count else [items[index * len(items) // count] for index in range(count)]

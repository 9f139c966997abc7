"""The few of JAX's insides that its tests use as tools: lists of dtypes, settings, comparisons."""


def safe_zip(*parts):
    return list(zip(*parts, strict=True))


def safe_map(f, *parts):
    return [f(*each) for each in zip(*parts, strict=True)]


def unzip2(pairs):
    pairs = list(pairs)
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def split_list(items, numbers):
    parts, at = [], 0
    for n in numbers:
        parts.append(list(items[at:at + n]))
        at += n
    return [*parts, list(items[at:])]


from jax._src import config, dtypes, test_util  # noqa: E402, F401

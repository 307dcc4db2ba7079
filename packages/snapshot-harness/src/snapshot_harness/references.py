"""References from one event to others, by their place in the log. No I/O."""

from collections.abc import Iterator, Mapping

from snapshot_harness.json_value import Json

Reference = tuple[str, list[int]]


def references(event: Json, path: str = "") -> Iterator[Reference]:
    """Yield the path and the places of every reference in an event."""
    if isinstance(event, dict):
        for key in sorted(event):
            below = f"{path}.{key}" if path else key
            places = _places(key, event[key])
            if places is None:
                yield from references(event[key], below)
            else:
                yield below, places
    elif isinstance(event, list):
        for index, child in enumerate(event):
            yield from references(child, f"{path}[{index}]")


def without_references(event: Json) -> Json:
    """Return an event with every reference left out, so that a shifted one compares equal."""
    if isinstance(event, dict):
        return {
            key: "refs" if _places(key, child) is not None else without_references(child)
            for key, child in event.items()
        }
    if isinstance(event, list):
        return [without_references(child) for child in event]
    return event


def mapped(places: list[int], counterparts: Mapping[int, int]) -> list[int]:
    """Return the places that have a counterpart, as those: an inserted event is not missed."""
    return [counterparts[place] for place in places if place in counterparts]


def _places(key: str, value: Json) -> list[int] | None:
    if key.endswith("Seqs") and isinstance(value, list):
        whole = all(type(place) is int for place in value)
        return list(value) if whole else None
    if key == "surfaceOp" and isinstance(value, dict):
        ends = [value.get("start"), value.get("end")]
        if all(type(place) is int for place in ends):
            return [place for place in ends if type(place) is int]
    return None

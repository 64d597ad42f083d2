"""A config's keys, read one by one: aliases, class defaults, nulls, and what was not read."""

from ..cards import allowed, is_kind
from ..errors import InputError, shown


class Config:
    """The keys of one object of a config. data: as given; defaults: of its class; where: for errors."""

    def __init__(self, data, defaults, where):
        self.data, self.defaults, self.where = data, defaults, where
        self.notes, self._read, self._inside, self._called = [], {"model_type"}, {}, {}
        self.assumed = {}  # sizes that the object does not give, and their defaults

    def get(self, kind, *keys):
        """The value under whichever of these keys is given, else the class's default; None for null or nothing.

        kind: as in fields.FIELDS. The keys are other names of one thing: two that differ are refused.
        """
        keys = [each for key in keys for each in (*self._called.get(key, ()), key)]
        given = [key for key in keys if key in self.data]
        self._read.update(given)
        stated = [key for key in given if self.data[key] is not None]
        if not given:
            key = next((key for key in keys if key in self.defaults), None)
            if key is not None and kind in ("size", "layers") and self.defaults[key] is not None:
                self.assumed[key] = self.defaults[key]
            return None if key is None else self.defaults[key]
        if not stated:
            return None
        key, value = stated[0], self.data[stated[0]]
        for other in stated[1:]:
            if self.data[other] != value:
                both = f"{key} = {shown(value)} and {other} = {shown(self.data[other])}"
                raise InputError(f"{self.where}: {both} contradict each other")
        if not is_kind(value, kind):
            self.refuse(key, value, allowed(kind))
        return value

    def need(self, kind, *keys):
        """The same, where neither null nor nothing will do."""
        value = self.get(kind, *keys)
        if value is None:
            keys = [each for key in keys for each in (*self._called.get(key, ()), key)]
            key = next((key for key in keys if key in self.data or key in self.defaults), keys[0])
            self.refuse(key, None, allowed(kind))
        return value

    def given(self, key):
        """Whether the config itself has the key, and not as null."""
        return any(self.data.get(each) is not None for each in (*self._called.get(key, ()), key))

    def calling(self, **others):
        """The same object, where usual keys may be called otherwise: {usual key: (keys of this model_type)}."""
        found = self.without()
        found._called = others
        return found

    def only(self, key, value, why):
        """Refuse anything but this value: no part of a model computes the other."""
        self._read.add(key)
        found = self.data.get(key)
        if found is not None and found != value:
            self.refuse(key, found, f"{value!r} ({why})")

    def without_null(self, key):
        """The same object without this key where it is null, which then means the class's own."""
        return self if self.given(key) else self.without(key)

    def without(self, *keys):
        """The same object without these keys, where other ones hold instead of them."""
        self.skip(*keys)
        found = Config({key: value for key, value in self.data.items() if key not in keys}, self.defaults, self.where)
        found.notes, found._read, found._inside, found._called = self.notes, self._read, self._inside, self._called
        found.assumed = self.assumed
        return found

    def skip(self, *keys):
        """These keys say nothing further."""
        self._read.update(keys)

    def default(self, key):
        """The class's own object under a key, as a Config, or None."""
        table = None if key in self.data else self.defaults.get(key)
        return None if table is None else Config(table, {}, f"{self.where}: {key}")

    def inside(self, key):
        """The object under a key, as a Config, or None."""
        table = self.get("table", key)
        if table is None:
            return None
        if key not in self._inside:
            inside = {} if key == "rope_parameters" else self.defaults.get(key) or {}  # that default is one whole
            self._inside[key] = Config(table, inside, f"{self.where}: {key}")
        return self._inside[key]

    def object(self, *keys):
        """The object under the first of these keys that has one, else the class's own, where null will not do."""
        found = next(filter(None, map(self.inside, keys)), None) or self.default(keys[-1])
        if found is None:
            self.refuse(keys[-1], None, allowed("table"))
        return found

    def note(self, text):
        """Say something of what was read in the model's notes."""
        self.notes.append(text)

    def refuse(self, key, value, allowed):
        """Raise the error for a value that cannot be."""
        key = next((each for each in self._called.get(key, ()) if each in self.data), key)
        raise InputError(f"{self.where}: {key} = {shown(value)}; allowed: {allowed}")

    def unread(self):
        """The keys that nobody asked for, sorted; those of objects inside as "outer.inner"."""
        return sorted(set(self.data) - self._read, key=str) + [
            f"{key}.{each}" for key, config in self._inside.items() for each in config.unread()
        ]

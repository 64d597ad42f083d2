"""What every component has in common: weights and children declared, one forward pass."""

from ..record import Frozen


class Component(Frozen):
    """One architecture variant: frozen fields, `weights()`, `axes()`, `forward(ops, p, x)`.

    part: the heading of its weights in `params.by_part`. contraction_part: headings of its contractions with a weight,
    and of those without. flop_class: class of its elementwise work, where it is not "elementwise".
    """

    part = None
    contraction_part = None
    flop_class = None

    def weights(self):
        """{name: axes}: input axes -> output axes ("D->KRH"); axes before "|" only index ("E|D->F")."""
        return {}

    def buffers(self):
        """{name: axes} of what a checkpoint holds beside parameters, and no training step changes by its gradient."""
        return {}

    def axes(self):
        """{axis letter: size} of its weights."""
        return {}

    def active(self):
        """{axis letter: size} of axes of which a token uses only so many."""
        return {}

    def children(self):
        """{name: component} of the components inside it."""
        return {name: each for name, each in self.__dict__.items() if isinstance(each, Component)}

    def forward(self, ops, p, x):
        """The computation, in terms of the primitives of `ops`; `p.name` is a weight, or a child to be called."""
        raise TypeError(f"{type(self).__name__} has no forward pass")


class Bound:
    """A component at its place in a model: `p.name` is a weight as an array, or a child to be called on arrays."""

    __slots__ = ("_component", "_name", "_ops", "_path", "_specs")

    def __init__(self, ops, component, path, name):
        self._ops, self._component, self._name = ops, component, name
        self._path = f"{path}/{name}" if path else name
        self._specs = component.weights() | component.buffers()

    def __call__(self, *arrays, **options):
        with self._ops.inside(self._name, self._component):
            return self._component.forward(self._ops, self, *arrays, **options)

    def __getattr__(self, name):
        if name in self._specs:
            return self._ops.weight(self._component, self._path, name, self._specs[name])
        child = getattr(self._component, name)
        return Bound(self._ops, child, self._path, name)

    def at(self, name, component):
        """A component inside this one that is not one of its fields: a layer of a stack."""
        return Bound(self._ops, component, self._path, name)

    def get(self, name):
        """The weight, or None where this component has none of that name (a bias that is not there)."""
        return getattr(self, name) if name in self._specs else None

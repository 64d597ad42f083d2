"""Layers that are the same block over and over (ALBERT)."""

from .base import Component
from .shared_block import SharedBlocks


class SharedLayer(Component):
    """A layer whose weights are those of its group: cross-layer parameter sharing (Lan et al. 2019, sec. 3.1).

    number: of the group; block: what its layers compute. The weights lie outside the layers, in `memory`.
    """

    number: int
    block: Component

    def children(self):
        return {}

    def forward(self, ops, p, x, memory, embedded, **shared):
        """x (BTD) after the layer; its operations are called as those of a layer with weights of its own."""
        return self.block.forward(ops, memory[self.number], x, **shared)


def shared_layers(fields, count, make):
    """(the blocks of the groups, [(layers, layer) of each group]) of a card; make(fields) is one block.

    Layer i is of group floor(i groups / layers), so that groups may differ by a layer.
    """
    groups = fields["layer_groups"]
    if isinstance(count, int) and groups > count:
        fields.refuse("layer_groups", groups, f"at most one for each of the {count} layers")
    for name in ("layers", "shared_blocks"):
        if fields.get(name) is not None:
            fields.refuse("layer_groups", groups, f"none with {name}")
    block, ends = make(fields), [-(-count * each // groups) for each in range(groups + 1)]
    if getattr(block, "cross_attention", None) is not None:
        fields.refuse("layer_groups", groups, "none in a decoder that attends to an encoder")
    runs = [(ends[each + 1] - ends[each], SharedLayer(each, block)) for each in range(groups)]
    return SharedBlocks((block,) * groups), runs

"""Small feed-forwards behind each layer, one for each language (X-MOD)."""

from .base import Component
from .blocks import SerialBlock, placement, serial
from .feed_forward import FeedForward
from .shared_block import touch


class IdleAdapter(FeedForward):
    """The adapter of another language: it lies in the checkpoint, and no token uses it."""

    def active(self):
        return {"D": 0, "F": 0}


class LanguageAdapters(Component):
    """The adapters of all languages, of which one is used.

    used, idle: the adapter of `language`, and what those of the others are.
    """

    languages: tuple
    language: str
    used: Component
    idle: Component

    def children(self):
        return {name: self.used if name == self.language else self.idle for name in self.languages}

    def forward(self, ops, p, x):
        for name, adapter in self.children().items():
            touch(p.at(name, adapter), adapter)  # all are there, whichever is used
        return p.at(self.language, self.used)(x)


class AdaptedBlock(SerialBlock):
    """A layer, then norm(x + adapter(x)) with the weights of its last norm once more (Pfeiffer et al. 2022, X-MOD)."""

    adapters: Component = None

    def forward(self, ops, p, x, **shared):
        x = SerialBlock.forward(self, ops, p, x, **shared)
        out = p.adapters(x)
        with ops.fused("adapters_residual"):
            return p.ffn_sum_norm(ops.add(x, out))


def adapted(fields, branches):
    """The layer with adapters that a card describes."""
    languages, width = fields["adapter_languages"], fields["adapter_dim"]
    if not languages or not all(isinstance(each, str) and each and "/" not in each for each in languages):
        fields.refuse("adapter_languages", languages, "names of languages")
    language = fields.get("adapter_language", languages[0])
    if language not in languages:
        fields.refuse("adapter_language", language, "one of adapter_languages: " + ", ".join(languages))
    if placement(fields) != "post" or "ffn" not in branches:
        fields.refuse("block", "adapted", "serial but in a layer with norm_placement = 'post' and a feed-forward")
    block, feed_forward = serial(fields, branches), branches["ffn"]
    if type(feed_forward) is not FeedForward:
        fields.refuse("block", "adapted", "serial with a feed-forward that has a gate, experts or groups")
    used, idle = (
        kind(feed_forward.d_model, width, feed_forward.activation, feed_forward.bias)
        for kind in (FeedForward, IdleAdapter)
    )
    return AdaptedBlock(**block.__dict__, adapters=LanguageAdapters(tuple(languages), language, used, idle))

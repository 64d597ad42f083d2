"""Hyper-connections: several residual streams, mixed anew around each branch (DeepSeek V4)."""

from . import norm
from .base import Component
from .blocks import BRANCHES


class HyperConnection(Component):
    """Manifold-constrained hyper-connections (Xie et al. 2026, mHC; DeepSeek-AI 2026, DeepSeek-V4, sec. 2.2).

    Streams are BTnD. Of all of them, normed together without a weight, come n numbers `pre`, n `post`, and a matrix
    `comb` of n x n, each as sigmoid or softmax of scale * (streams weight) + base:

        x = sum_n pre_n stream_n;    stream_l = post_l branch(x) + sum_m comb_ml stream_m

    Rows and columns of comb are divided by their sums in turn (Sinkhorn and Knopp 1967), `iterations` times.
    """

    d_model: int
    streams: int
    iterations: int
    eps: float
    norm_eps: float

    part, contraction_part = "hyper_connections", ("hyper_connections", "hyper_connections")

    def weights(self):
        return {"pre": "nD->m", "post": "nD->m", "comb": "nD->ml", "pre_base": "m", "post_base": "m",
                "comb_base": "ml", "scale": "z"}  # fmt: skip

    def axes(self):
        return {"D": self.d_model, "z": 3} | dict.fromkeys("nml", self.streams)

    def forward(self, ops, p, streams, *made):
        """(x, post, comb) of the streams before a branch; or of these, its output, post and comb: those after it."""
        return self.after(ops, streams, *made) if made else self.before(ops, p, streams)

    def before(self, ops, p, streams):
        """What a branch reads, and how what it makes is mixed in."""
        normed = ops.norm("l2_norm", streams, over=2, eps=self.norm_eps)
        pre, post, comb = (self.mapped(ops, p, normed, name, at) for at, name in enumerate(("pre", "post", "comb")))
        pre = ops.apply("shift", ops.apply("sigmoid", pre), by=self.eps)
        post = ops.scale(ops.apply("sigmoid", post), 2.0)
        comb = self.balanced(ops, ops.apply("shift", ops.softmax(comb, "l"), by=self.eps))
        x = ops.sum(ops.multiply(streams, ops.rename(pre, "BTn")), "n")
        return x, post, comb

    def mapped(self, ops, p, normed, name, at):
        """scale * (streams weight) + base of one of the three."""
        axes = p.get(name).axes[2:]
        found = ops.einsum(f"BTnD,nD{axes}->BT{axes}", normed, p.get(name))
        return ops.add(ops.multiply(found, ops.at(p.scale, "z", at)), p.get(f"{name}_base"))

    def balanced(self, ops, comb):
        """comb with the sums of its rows and columns brought to 1, columns first and last."""

        def columns(comb):
            return ops.order(ops.share(ops.order(comb, "BTlm"), self.eps), "BTml")

        return ops.repeat(self.iterations - 1, lambda comb: columns(ops.share(comb, self.eps)), columns(comb))

    def after(self, ops, streams, out, post, comb):
        """The streams after a branch."""
        mixed = ops.einsum("BTml,BTmD->BTlD", comb, ops.rename(streams, "BTmD"), name="mixed")
        added = ops.einsum("BTD,BTl->BTlD", out, ops.rename(post, "BTl"), name="added")
        return ops.rename(ops.add(added, mixed), "BTnD")


class IndependentConnection(HyperConnection):
    """Hyper-connections that leave the streams to themselves (Hy4): no matrix, stream_n + post_n branch(x).

    post is sigmoid times `magnitude`, and a little more.
    """

    magnitude: float = 2.0

    def weights(self):
        return {"pre": "nD->m", "post": "nD->m", "pre_base": "m", "post_base": "m", "scale": "z"}

    def axes(self):
        return {"D": self.d_model, "z": 2} | dict.fromkeys("nm", self.streams)

    def before(self, ops, p, streams):
        normed = ops.norm("l2_norm", streams, over=2, eps=self.norm_eps)
        pre, post = (
            ops.apply("sigmoid", self.mapped(ops, p, normed, name, at)) for at, name in enumerate(("pre", "post"))
        )
        pre = ops.apply("shift", pre, by=self.eps)
        post = ops.apply("shift", ops.scale(post, self.magnitude), by=self.eps)
        return ops.sum(ops.multiply(streams, ops.rename(pre, "BTn")), "n"), post

    def after(self, ops, streams, out, post):
        return ops.add(streams, ops.einsum("BTD,BTn->BTnD", out, ops.rename(post, "BTn"), name="added"))


class HyperBlock(Component):
    """One branch after the other between n residual streams: see `HyperConnection`."""

    attention_streams: HyperConnection = None
    attention_norm: Component = None
    attention: Component = None
    mixer_streams: HyperConnection = None
    mixer_norm: Component = None
    mixer: Component = None
    ffn_streams: HyperConnection = None
    ffn_norm: Component = None
    ffn: Component = None

    def forward(self, ops, p, streams, **shared):
        """Streams (BTnD) after the layer."""
        for name in BRANCHES:
            if getattr(self, name, None) is None:
                continue
            around = getattr(p, f"{name}_streams")
            with ops.fused(f"{name}_mix"):
                x, *mix = around(streams)
                x = getattr(p, f"{name}_norm")(x)
            out = getattr(p, name)(x, **(shared if name == "attention" else {}))
            with ops.fused(f"{name}_residual"):
                streams = around(streams, out, *mix)
        return streams


class Widen(Component):
    """n streams that all begin as the embedding."""

    streams: int

    def forward(self, ops, p, x):
        with ops.fused("streams"):
            return ops.cast(ops.spread(x, "n", self.streams, behind="T"), "activations")


class Narrow(Component):
    """sum_n pre_n stream_n, pre as in `HyperConnection`."""

    d_model: int
    streams: int
    eps: float
    norm_eps: float

    part, contraction_part = "hyper_connections", ("hyper_connections", "hyper_connections")

    def weights(self):
        return {"pre": "nD->m", "base": "m", "scale": "z"}

    def axes(self):
        return {"D": self.d_model, "z": 1} | dict.fromkeys("nm", self.streams)

    def forward(self, ops, p, streams):
        with ops.fused("narrow"):
            normed = ops.norm("l2_norm", streams, over=2, eps=self.norm_eps)
            pre = ops.multiply(ops.einsum("BTnD,nDm->BTm", normed, p.pre), ops.at(p.scale, "z", 0))
            pre = ops.apply("shift", ops.apply("sigmoid", ops.add(pre, p.base)), by=self.eps)
            return ops.sum(ops.multiply(streams, ops.rename(pre, "BTn")), "n")


class StreamPrediction(Component):
    """A module that predicts a further token from all streams (DeepSeek-V4, inference/model.py, `MTPBlock`).

    norm(narrow(block(project(norm(embedding of the next token)) + project(norm(streams))))), declared for its weights
    alone as that of mtp.py.
    """

    d_model: int
    embedding_norm: Component
    hidden_norm: Component
    block: Component
    narrow: Component
    final_norm: Component

    part = "mtp"

    def weights(self):
        return {"project_embedding": "D->O", "project_hidden": "D->O"}

    def axes(self):
        return {"D": self.d_model, "O": self.d_model}


def token_prediction(fields, block):
    """The module that a card describes, around such a block."""
    width = fields["d_model"]
    norms = [norm(fields, width) for _ in range(3)]
    return StreamPrediction(width, norms[0], norms[1], block, ends(fields)["narrow"], norms[2])


def hyper_connections(fields, branches):
    """The block that a card describes."""
    if "cross_attention" in branches:
        fields.refuse("block", "hyper_connections", "serial in a decoder that attends to an encoder")
    if fields.of_all.get("block") != "hyper_connections":
        fields.refuse("block", "hyper_connections", "in all layers of a model, or in none")
    if fields.get("norm_placement", "pre") != "pre":
        fields.refuse("norm_placement", fields.get("norm_placement"), "pre with block = 'hyper_connections'")
    d_model, magnitude = fields["d_model"], fields.get("hyper_magnitude")
    if magnitude is None:
        iterations = fields.get("hyper_iterations", 20)
        around = HyperConnection(d_model, fields["hyper_streams"], iterations, *epsilons(fields))
    else:
        around = IndependentConnection(d_model, fields["hyper_streams"], None, *epsilons(fields), magnitude)
    parts = {f"{name}_norm": norm(fields, d_model) for name in branches}
    return HyperBlock(**branches, **parts, **{f"{name}_streams": around for name in branches})


def epsilons(fields):
    """What keeps sums of the streams' mixing above 0, and of the norms."""
    return fields.get("hyper_eps", 1e-6), fields.get("norm_eps", 1e-5)


def ends(fields):
    """What makes streams of the embedding, and a hidden state of the streams."""
    streams = fields["hyper_streams"]
    return {"widen": Widen(streams), "narrow": Narrow(fields["d_model"], streams, *epsilons(fields))}

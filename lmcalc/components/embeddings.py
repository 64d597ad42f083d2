"""Token embedding and the head that turns the last hidden state into logits."""

from . import norm
from .base import Component


class Projection(Component):
    """A matrix between the width of the embedding table, X, and that of the model, D (Lan et al. 2019; OPT 350M)."""

    inputs: int
    outputs: int
    spec: str = "X->D"

    part, contraction_part = "embedding_projection", ("embedding_projection", "embedding_projection")

    def weights(self):
        return {"weight": self.spec}

    def axes(self):
        return dict(zip(self.spec.split("->"), (self.inputs, self.outputs)))

    def forward(self, ops, p, x):
        a, b = self.spec.split("->")
        return ops.einsum(f"BT{a},{a}{b}->BT{b}", x, p.weight)


class TokenEmbedding(Component):
    """A row of the table for each token; `scale` multiplies it (Gemma: sqrt(d_model)).

    project_in: None, or what brings the rows of a narrower or wider table to the width of the model.
    """

    vocab_size: int
    width: int
    scale: float = None
    project_in: Component = None

    part = "token_embedding"

    def weights(self):
        return {"table": "V|D" if self.project_in is None else "V|X"}

    def axes(self):
        return {"V": self.vocab_size, "D": self.width, "X": self.width}

    def forward(self, ops, p, tokens):
        with ops.fused("embedding"):
            x = ops.gather(p.table, tokens)
            x = x if self.scale is None else ops.scale(x, self.scale)
        return x if self.project_in is None else p.project_in(x)


class TokenTypes(Component):
    """A learned vector for the segment of a token (Devlin et al. 2018); all tokens are of the first here."""

    d_model: int
    types: int

    part = "token_type_embedding"

    def weights(self):
        return {"table": "Y|D"}

    def axes(self):
        return {"Y": self.types, "D": self.d_model}

    def forward(self, ops, p, x):
        return ops.add(x, ops.row(p.table, 0))


class HeadTransform(Component):
    """norm(activation(dense(x))) before the head (Devlin et al. 2018, BERT's masked language model)."""

    d_model: int
    activation: str
    norm: Component

    part, contraction_part = "lm_head", ("lm_head", "lm_head")

    def weights(self):
        return {"weight": "D->O", "bias": "O"}

    def axes(self):
        return {"D": self.d_model, "O": self.d_model}

    def forward(self, ops, p, x):
        x = ops.linear("BTD,DO->BTO", x, p.weight, p.bias)
        with ops.fused("activation_norm"):
            return p.norm(ops.rename(ops.apply(self.activation, x), "BTD"))


class Head(Component):
    """Logits of every token of the vocabulary: by a matrix of its own, or by the embedding table (Press and Wolf 2017).

    Before it: a transform (BERT), a projection to the width of the table (OPT 350M), `scale` on what is multiplied (T5:
    1/sqrt(d_model)). Behind it: a bias, `logit_scale` (Cohere, Granite), softcap * tanh(logit / softcap) (Gemma 2).
    """

    vocab_size: int
    width: int
    tied: bool = False
    bias: bool = False
    scale: float = None
    transform: Component = None
    project_out: Component = None
    logit_scale: float = None
    softcap: float = None

    part, contraction_part = "lm_head", ("lm_head", "lm_head")

    def weights(self):
        axis = "D" if self.project_out is None else "X"
        own = {} if self.tied else {"weight": f"{axis}->V"}
        return own | ({"bias": "V"} if self.bias else {})

    def axes(self):
        return {"V": self.vocab_size, "D": self.width, "X": self.width}

    def forward(self, ops, p, x, table):
        if self.transform is not None:
            x = p.transform(x)
        if self.project_out is not None:
            x = p.project_out(x)
        axis, weight = x.axes[-1], table if self.tied else p.weight
        equation = f"BT{axis},V{axis}->BTV" if self.tied else f"BT{axis},{axis}V->BTV"
        with ops.fused("logits"):
            x = x if self.scale is None else ops.scale(x, self.scale)
            logits = ops.linear(equation, x, weight, p.get("bias"))
            if self.logit_scale is not None:
                logits = ops.scale(logits, self.logit_scale)
            return logits if self.softcap is None else ops.apply("softcap", logits, cap=self.softcap)


def embedding(fields):
    """The token embedding that a card describes."""
    width, d_model = fields.get("embedding_dim"), fields["d_model"]
    if width is not None and width == d_model:
        fields.refuse("embedding_dim", width, "a width other than d_model, or none")
    project_in = None if width is None else Projection(width, d_model)
    return TokenEmbedding(fields["vocab_size"], width or d_model, fields.get("embedding_scale"), project_in)


def head(fields):
    """The head that a card describes."""
    width, d_model = fields.get("embedding_dim"), fields["d_model"]
    project_out = None if width is None else Projection(d_model, width, "D->X")
    return Head(fields["vocab_size"], width or d_model, fields.get("tied", False), fields.get("head_bias", False),
                fields.get("head_scale"), _transform(fields), project_out, fields.get("logit_scale"),
                fields.get("logit_softcap"))  # fmt: skip


def _transform(fields):
    from .feed_forward import KINDS

    if not fields.get("head_transform", False):
        return None
    name = fields.get("ffn", "swiglu")
    activation, gated = KINDS.get(name, (None, True))
    if gated or activation == "xielu":
        fields.refuse("head_transform", True, f"false, since ffn = {name!r} is no plain activation that it could use")
    return HeadTransform(fields["d_model"], activation, norm(fields, fields["d_model"]))

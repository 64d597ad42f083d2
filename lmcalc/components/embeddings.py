"""Token embedding and the head that turns the last hidden state into logits."""

from . import norm
from .base import Component


class Projection(Component):
    """A matrix between the width of the embedding table, X, and that of the model, D (Lan et al. 2019; OPT 350M)."""

    inputs: int
    outputs: int
    spec: str = "X->D"
    bias: bool = False

    part, contraction_part = "embedding_projection", ("embedding_projection", "embedding_projection")

    def weights(self):
        return {"weight": self.spec} | ({"bias": self.spec.partition("->")[2]} if self.bias else {})

    def axes(self):
        return dict(zip(self.spec.split("->"), (self.inputs, self.outputs)))

    def forward(self, ops, p, x):
        a, b = self.spec.split("->")
        return ops.linear(f"BT{a},{a}{b}->BT{b}", x, p.weight, p.get("bias"))


class TokenEmbedding(Component):
    """A row of the table for each token; `scale` multiplies it (Gemma: sqrt(d_model)).

    project_in: None, or what brings the rows of a narrower or wider table to the width of the model. axis: X where the
    rows are of another width than the model, whether they are brought to it here or later. beside: what is joined to
    the rows before that.
    """

    vocab_size: int
    width: int
    scale: float = None
    project_in: Component = None
    axis: str = "D"
    beside: Component = None

    part = "token_embedding"

    def weights(self):
        return {"table": f"V|{self.axis}"}

    def axes(self):
        return {"V": self.vocab_size, self.axis: self.width}

    def forward(self, ops, p, tokens):
        with ops.fused("embedding"):
            x = ops.gather(p.table, tokens)
            x = x if self.scale is None else ops.scale(x, self.scale)
            x = x if self.beside is None else p.beside(x)
        return x if self.project_in is None else p.project_in(x)


class FurtherTable(Component):
    """A further vector for each token: the first of its table here."""

    rows: int
    width: int

    part = "token_embedding"

    def weights(self):
        return {"table": "Y|W"}

    def axes(self):
        return {"Y": self.rows, "W": self.width}

    def forward(self, ops, p, x):
        sizes = x.sizes[:2]
        index = ops.table("BT", sizes, None if ops.data is None else ops.data.np.zeros(sizes, int))
        return ops.join(x, ops.gather(p.table, index))


class Beside(Component):
    """Vectors of further tables joined to that of the token (Su et al. 2022, RoCBert: its shape, its pronunciation)."""

    tables: tuple

    def children(self):
        return {str(number): table for number, table in enumerate(self.tables)}

    def forward(self, ops, p, x):
        for name, table in self.children().items():
            x = p.at(name, table)(x)
        return ops.rename(x, "BTX")


class Neighbours(Component):
    """The rows of the next token, of the token itself and of the one before it, side by side: a convolution of 3 over
    embeddings, but for its matrix (Sun et al. 2020, MobileBERT, sec. 3.2)."""

    def forward(self, ops, p, x):
        sizes = (*x.sizes[:2], 3 * x.sizes[2])
        return ops.rename(ops.neighbours(x, sizes), "BTX")


class TokenTypes(Component):
    """A learned vector for the segment of a token (Devlin et al. 2018); all tokens are of the first here."""

    d_model: int
    types: int
    axis: str = "D"

    part = "token_type_embedding"

    def weights(self):
        return {"table": f"Y|{self.axis}"}

    def axes(self):
        return {"Y": self.types, self.axis: self.d_model}

    def forward(self, ops, p, x):
        return ops.add(x, ops.row(p.table, 0))


class MoreTokenTypes(Component):
    """Further such tables: the task (ERNIE), columns, rows and ranks of a table of text (TAPAS)."""

    tables: tuple

    def children(self):
        return {str(number): table for number, table in enumerate(self.tables)}

    def forward(self, ops, p, x):
        for name, table in self.children().items():
            x = p.at(name, table)(x)
        return x


class HeadTransform(Component):
    """norm(activation(dense(x))) before the head (Devlin et al. 2018, BERT's masked language model).

    width, axis: of what comes out; another than the model's where the table of the head is (ELECTRA, ALBERT).
    """

    d_model: int
    activation: str
    norm: Component
    width: int
    axis: str = "D"
    bias: bool = True

    part, contraction_part = "lm_head", ("lm_head", "lm_head")

    def weights(self):
        return {"weight": "D->O"} | ({"bias": "O"} if self.bias else {})

    def axes(self):
        return {"D": self.d_model, "O": self.width}

    def forward(self, ops, p, x):
        x = ops.linear("BTD,DO->BTO", x, p.weight, p.get("bias"))
        with ops.fused("activation_norm"):
            return p.norm(ops.rename(ops.apply(self.activation, x), f"BT{self.axis}"))


class Head(Component):
    """Logits of every token of the vocabulary: by a matrix of its own, or by the embedding table (Press and Wolf 2017).

    Before it: a transform (BERT), a projection to the width of the table (OPT 350M), `scale` on what is multiplied (T5:
    1/sqrt(d_model)). Behind it: a bias, another that is a buffer (BART), `logit_scale` (Cohere, Granite), softcap *
    tanh(logit / softcap) (Gemma 2). rest: how much wider the model is than the table, which a matrix of its own makes
    up for (MobileBERT).
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
    logits_bias: bool = False
    rest: int = None

    part, contraction_part = "lm_head", ("lm_head", "lm_head")

    @property
    def axis(self):
        """The axis of what is multiplied: X where the table of the head has another width than the model."""
        return "X" if self.project_out is not None else "D" if self.transform is None else self.transform.axis

    def weights(self):
        own = {} if self.tied else {"weight": f"{self.axis}->V"}
        rest = {} if self.rest is None else {"rest": "V->Z"}
        return own | rest | ({"bias": "V"} if self.bias else {})

    def buffers(self):
        return {"logits_bias": "V"} if self.logits_bias else {}

    def axes(self):
        return {"V": self.vocab_size, self.axis: self.width} | ({} if self.rest is None else {"Z": self.rest})

    def forward(self, ops, p, x, table):
        if self.transform is not None:
            x = p.transform(x)
        if self.project_out is not None:
            x = p.project_out(x)
        axis, weight = x.axes[-1], table if self.tied else p.weight
        if self.rest is not None:
            with ops.fused("table"):
                weight = ops.rename(ops.join(weight, p.rest), f"V{axis}")
        equation = f"BT{axis},V{axis}->BTV" if self.tied else f"BT{axis},{axis}V->BTV"
        with ops.fused("logits"):
            x = x if self.scale is None else ops.scale(x, self.scale)
            logits = ops.linear(equation, x, weight, p.get("bias"))
            if self.logits_bias:
                logits = ops.add(logits, p.logits_bias)
            if self.logit_scale is not None:
                logits = ops.scale(logits, self.logit_scale)
            return logits if self.softcap is None else ops.apply("softcap", logits, cap=self.softcap)


def embedding(fields):
    """The token embedding that a card describes."""
    width, d_model, later = fields.get("embedding_dim"), fields["d_model"], _later(fields)
    if fields.get("embedding_tables") is not None:
        return _beside(fields)
    if width is not None and width == d_model and not later:
        fields.refuse("embedding_dim", width, "a width other than d_model, or none")
    bias, beside = not later and fields.get("embedding_projection_bias", False), None
    if fields.get("embedding_neighbours", False):
        if width is None or later or fields.get("stack") != "encoder":
            why = "false but in an encoder with an embedding_dim that is projected at once"
            fields.refuse("embedding_neighbours", True, why)
        beside = Neighbours()
    project_in = None if width is None or later else Projection(3 * width if beside else width, d_model, bias=bias)
    return TokenEmbedding(fields["vocab_size"], width or d_model, fields.get("embedding_scale"), project_in,
                          "D" if width is None else "X", beside)  # fmt: skip


def _beside(fields):
    """The embedding from several tables that a card describes."""
    tables, d_model = fields["embedding_tables"], fields["d_model"]
    sizes = [size for each in tables if isinstance(each, list) and len(each) == 2 for size in each]
    if not tables or len(sizes) != 2 * len(tables) or any(type(size) is not int or size < 1 for size in sizes):
        fields.refuse("embedding_tables", tables, "pairs of rows and width, integers of at least 1")
    if fields.get("embedding_dim") is not None:
        fields.refuse("embedding_tables", tables, "none with embedding_dim")
    beside = Beside(tuple(FurtherTable(*each) for each in tables))
    project_in = Projection(d_model + sum(width for _, width in tables), d_model, bias=True)
    return TokenEmbedding(fields["vocab_size"], d_model, fields.get("embedding_scale"), project_in, beside=beside)


def sum_width(fields):
    """(width, axis) of the vectors that are summed before the layers: those of the table, where it is projected later.

    >>> from lmcalc.model import Fields
    >>> sum_width(Fields({"d_model": 64, "embedding_dim": 16, "embedding_projection": "sum"}, "card"))
    (16, 'X')
    """
    return (fields["embedding_dim"], "X") if _later(fields) else (fields["d_model"], "D")


def projection_of_sum(fields):
    """What brings that sum to the width of the model, or None."""
    if not _later(fields):
        return None
    return Projection(*(fields[name] for name in ("embedding_dim", "d_model")),
                      bias=fields.get("embedding_projection_bias", False))  # fmt: skip


def _later(fields):
    """Whether the projection lies behind positions, token types and norm (ELECTRA, ALBERT)."""
    where = fields.get("embedding_projection", "table")
    if where == "sum" and fields.get("embedding_dim") is None:
        fields.refuse("embedding_projection", where, "none without embedding_dim")
    return where == "sum"


def token_types(fields):
    """{name: tables of token types} of a stack."""
    parts, (width, axis) = {}, sum_width(fields)
    if fields.get("token_types") is not None:
        parts["token_types"] = TokenTypes(width, fields["token_types"], axis)
    more = fields.get("more_token_types")
    if more is not None:
        if not more or not all(isinstance(each, int) and not isinstance(each, bool) and each > 0 for each in more):
            fields.refuse("more_token_types", more, "integers of at least 1: the rows of each table")
        parts["more_token_types"] = MoreTokenTypes(tuple(TokenTypes(width, each, axis) for each in more))
    return parts


def head(fields):
    """The head that a card describes."""
    width, d_model = fields.get("embedding_dim"), fields["d_model"]
    known, tied, transform = fields.get("head_vocab"), fields.get("tied", False), _transform(fields)
    rest = fields.get("head_rest", False)
    if rest and (not tied or width is None or _later(fields)):
        fields.refuse("head_rest", rest, "false but with tied = true and an embedding_dim that is projected at once")
    if rest:
        project_out, width, rest = None, d_model, d_model - width
    elif _later(fields):  # the transform leads to the width of the table
        project_out, width = None, d_model if transform is None else transform.width
        if tied and transform is None and fields["embedding_dim"] != d_model:
            fields.refuse("tied", tied, "false without head_transform, which leads to the width of the table")
    else:
        project_out = None if width is None else Projection(d_model, width, "D->X")
    if known is not None and tied:
        fields.refuse("head_vocab", known, "none with tied = true: the embedding table has a row for each token")
    return Head(known or fields["vocab_size"], width or d_model, tied, fields.get("head_bias", False),
                fields.get("head_scale"), transform, project_out, fields.get("logit_scale"),
                fields.get("logit_softcap"), fields.get("logits_bias", False), rest or None)  # fmt: skip


def _transform(fields):
    from .feed_forward import KINDS

    if not fields.get("head_transform", False):
        return None
    name, given = fields.get("ffn", "swiglu"), fields.get("head_activation")
    activation, gated = KINDS.get(given or name, (None, True))
    if gated or activation == "xielu":
        why = f"false, since ffn = {name!r} is no plain activation that it could use"
        fields.refuse("head_transform", True, f"{why}, or with head_activation")
    d_model, bias, width, axis = fields["d_model"], fields.get("head_transform_bias", True), fields["d_model"], "D"
    if _later(fields):
        width, axis = fields["embedding_dim"], "X"
        own = fields.get("head_transform_dim")
        if own is not None and fields.get("tied", False):
            fields.refuse("head_transform_dim", own, "none with tied = true: then it is embedding_dim")
        width = own or width
    made = norm(fields, width, axis, fields.get("head_norm_kind"))
    return HeadTransform(d_model, activation, made, width, axis, bias)

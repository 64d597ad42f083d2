"""A feed-forward of which most hidden entries are zero (Gemma 3n)."""

from .feed_forward import GatedFeedForward


class SparseFeedForward(GatedFeedForward):
    """Of the gate only what lies above mean + deviations * standard deviation of its row passes, less that threshold.

    Statistical top-k (You et al. 2025, Spark Transformer): with deviations = Phi^-1(s) a share s of normal entries is
    zero. The products are dense here, as in the published code.
    """

    deviations: float = 0.0

    def gated(self, ops, gate, up):
        return GatedFeedForward.gated(self, ops, ops.norm("sparse_relu", gate, deviations=self.deviations), up)


def sparse(fields, dense):
    """That feed-forward with the sparsity that a card gives."""
    share = fields["ffn_sparsity"]
    if isinstance(share, float | int) and not share < 1:
        fields.refuse("ffn_sparsity", share, "less than 1, the share of hidden entries that are zero")
    if type(dense) is not GatedFeedForward:
        fields.refuse("ffn_sparsity", share, f"none with ffn = {fields.get('ffn')!r}, which has no plain gate")
    from statistics import NormalDist

    return SparseFeedForward(**dense.__dict__, deviations=NormalDist().inv_cdf(share))

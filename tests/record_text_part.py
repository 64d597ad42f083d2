"""A language model of the text part of a multimodal one, for the recorders: its text model, and a head on top.

That is what the multimodal class computes of text alone: it looks up tokens, runs its text model and puts one matrix
behind it, scaled by logits_scaling where it has that (Granite), or scaled and capped (Muse).
"""

import transformers
from torch import nn
from transformers.modeling_outputs import CausalLMOutputWithPast


class TextPart(transformers.PreTrainedModel):
    """kind: the name of the text model's class."""

    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}
    base_model_prefix = "model"
    _supports_sdpa = True

    def __init__(self, config, kind):
        super().__init__(config)
        self.model = found(kind)(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, input_ids=None, cache=None, use_cache=None, **keywords):
        if use_cache and cache is None:
            cache = transformers.DynamicCache(config=self.config)
        out = self.model(input_ids=input_ids, cache=cache, use_cache=use_cache, **keywords)
        logits = self.lm_head(out.last_hidden_state) / getattr(self.config, "logits_scaling", 1.0)
        logits = logits * getattr(self.config, "output_multiplier", 1.0)
        if getattr(self.config, "final_logit_softcapping", None) is not None:
            logits = self.config.final_logit_softcapping * (logits / self.config.final_logit_softcapping).tanh()
        return CausalLMOutputWithPast(logits=logits, cache=out.cache)

    def _init_weights(self, module):
        pass


def found(kind):
    """A class of transformers, exported or not."""
    import importlib
    import pkgutil

    if hasattr(transformers, kind):
        return getattr(transformers, kind)
    for package in pkgutil.iter_modules(transformers.models.__path__):
        if kind.lower().startswith(package.name.replace("_", "")):
            module = importlib.import_module(f"transformers.models.{package.name}.modeling_{package.name}")
            if hasattr(module, kind):
                return getattr(module, kind)
    raise LookupError(kind)

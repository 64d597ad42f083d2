"""One short function for each `model_type`: a Config in, the fields of a card out (see fields.FIELDS; None: not set).

The tables say where each is. FAMILIES: those of transformers 5, from which they were read and against which they are
checked (tests/test_logits.py); defaults.json has the defaults of their classes. OUTSIDE: published with code of their
own, or with none, for which transformers has no class; that code is never run, so a config has to have each key that
its function needs.
"""

from importlib import import_module

# model_type: (file, function)
FAMILIES = {
    "apertus": ("dense", "apertus"),
    "arcee": ("dense", "arcee"),
    "bert": ("dense", "bert"),
    "bloom": ("dense", "bloom"),
    "cohere": ("dense", "cohere"),
    "cohere2": ("dense", "cohere2"),
    "ernie4_5": ("dense", "ernie4_5"),
    "exaone4": ("dense", "exaone4"),
    "falcon": ("dense", "falcon"),
    "gemma": ("dense", "gemma"),
    "gemma2": ("dense", "gemma2"),
    "gemma3_text": ("dense", "gemma3"),
    "glm": ("dense", "glm"),
    "glm4": ("dense", "glm4"),
    "gpt2": ("dense", "gpt2"),
    "gpt_neo": ("dense", "gpt_neo"),
    "gpt_neox": ("dense", "gpt_neox"),
    "gptj": ("dense", "gptj"),
    "granite": ("dense", "granite"),
    "helium": ("dense", "helium"),
    "llama": ("dense", "llama"),
    "mistral": ("dense", "mistral"),
    "mpt": ("dense", "mpt"),
    "mt5": ("dense", "mt5"),
    "nemotron": ("dense", "nemotron"),
    "olmo": ("dense", "olmo"),
    "olmo2": ("dense", "olmo2"),
    "olmo3": ("dense", "olmo3"),
    "openai-gpt": ("dense", "openai_gpt"),
    "opt": ("dense", "opt"),
    "phi": ("dense", "phi"),
    "phi3": ("dense", "phi3"),
    "qwen2": ("dense", "qwen2"),
    "qwen3": ("dense", "qwen3"),
    "seed_oss": ("dense", "seed_oss"),
    "smollm3": ("dense", "smollm3"),
    "stablelm": ("dense", "stablelm"),
    "starcoder2": ("dense", "starcoder2"),
    "t5": ("dense", "t5"),
    # mixtures of experts on softmax attention
    "mixtral": ("moe", "mixtral"),
    "qwen2_moe": ("moe", "qwen2_moe"),
    "qwen3_moe": ("moe", "qwen3_moe"),
    "olmoe": ("moe", "olmoe"),
    "flex_olmo": ("moe", "flex_olmo"),
    "phimoe": ("moe", "phimoe"),
    "granitemoe": ("moe", "granitemoe"),
    "granitemoeshared": ("moe", "granitemoeshared"),
    "gpt_oss": ("moe", "gpt_oss"),
    "glm4_moe": ("moe", "glm4_moe"),
    "dots1": ("moe", "dots1"),
    "hunyuan_v1_moe": ("moe", "hunyuan_v1_moe"),
    "ernie4_5_moe": ("moe", "ernie4_5_moe"),
    "minimax_m2": ("moe", "minimax_m2"),
    "dbrx": ("other", "dbrx"),
    "jetmoe": ("moe", "jetmoe"),
    "switch_transformers": ("moe", "switch_transformers"),
    "granitemoe_swa": ("moe", "granitemoe_swa"),
    "aria_text": ("moe", "aria_text"),
    "cohere2_moe": ("moe", "cohere2_moe"),
    "solar_open": ("sigmoid_moe", "solar_open"),
    "exaone_moe": ("sigmoid_moe", "exaone_moe"),
    "afmoe": ("sigmoid_moe", "afmoe"),
    "hy_v3": ("sigmoid_moe", "hy_v3"),
    "sarvam_moe": ("sigmoid_moe", "sarvam_moe"),
    "flint": ("sigmoid_moe", "flint"),
    "kolibri1": ("sigmoid_moe", "kolibri1"),
    # attention of other forms
    "llama4_text": ("other", "llama4"),
    "mimo_v2_flash": ("other", "mimo_v2_flash"),
    "diffllama": ("other", "diffllama"),
    "gemma3n_text": ("gemma", "gemma3n"),
    "gemma4_text": ("gemma", "gemma4"),
    # latent attention
    "deepseek_v2": ("latent", "deepseek_v2"),
    "deepseek_v3": ("latent", "deepseek_v3"),
    "deepseek_v32": ("latent", "deepseek_v32"),
    "glm_moe_dsa": ("latent", "glm_moe_dsa"),
    "minicpm3": ("latent", "minicpm3"),
    "longcat_flash": ("latent", "longcat_flash"),
    "glm4_moe_lite": ("latent", "glm4_moe_lite"),
    "sarvam_mla": ("latent", "sarvam_mla"),
    "axk1": ("latent", "axk1"),
    "mistral4": ("latent", "mistral4"),
    "youtu": ("latent", "youtu"),
    # state spaces and recurrences
    "mamba": ("recurrent", "mamba"),
    "falcon_mamba": ("recurrent", "falcon_mamba"),
    "mamba2": ("recurrent", "mamba2"),
    "rwkv": ("recurrent", "rwkv"),
    "recurrent_gemma": ("recurrent", "recurrent_gemma"),
    # hybrids
    "jamba": ("hybrid", "jamba"),
    "bamba": ("hybrid", "bamba"),
    "granitemoehybrid": ("hybrid", "granitemoehybrid"),
    "falcon_h1": ("hybrid", "falcon_h1"),
    "nemotron_h": ("hybrid", "nemotron_h"),
    "zamba2": ("hybrid", "zamba2"),
    "qwen3_next": ("hybrid", "qwen3_next"),
    "qwen3_5_text": ("hybrid", "qwen3_5"),
    "qwen3_5_moe_text": ("hybrid", "qwen3_5_moe"),
    "olmo_hybrid": ("hybrid", "olmo_hybrid"),
    "lfm2": ("hybrid", "lfm2"),
    "lfm2_moe": ("hybrid", "lfm2_moe"),
    "kimi_linear": ("hybrid", "kimi_linear"),
    "minimax": ("hybrid", "minimax"),
}
OUTSIDE = {
    "baichuan": ("outside", "baichuan"),
    "chatglm": ("outside", "chatglm"),
    "deepseek": ("outside", "deepseek"),
    "grok-1": ("outside", "grok"),
    "internlm": ("outside", "internlm"),
    "internlm2": ("outside", "internlm2"),
    "mimo": ("outside", "mimo"),
    "openlm": ("outside", "openlm"),
    "phi3small": ("outside", "phi3small"),
    "qwen": ("outside", "qwen"),
    "step3_text": ("outside", "step3"),
    # with no code at all: the tables of papers
    "chinchilla": ("papers", "gopher"),
    "encoder-decoder": ("papers", "transformer"),
    "gopher": ("papers", "gopher"),
    "gpt3": ("papers", "gpt3"),
    "lamda": ("papers", "lamda"),
    "palm": ("papers", "palm"),
}
NESTED = {  # multimodal model_type: that of its text_config
    "aria": "aria_text",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
}
ALIASES = {
    "kimi_k2": "deepseek_v3",
    "minimax_text_01": "minimax",
}  # model_type in published configs: the class that it is


def family(model_type):
    """The function of a model_type."""
    file, name = (FAMILIES | OUTSIDE)[model_type]
    return getattr(import_module(f".{file}", __name__), name)


def published_defaults(model_type):
    """What a key left out means by the published code, or paper, of a model_type outside transformers."""
    return getattr(import_module(f".{OUTSIDE[model_type][0]}", __name__), "DEFAULTS", {}).get(model_type, {})

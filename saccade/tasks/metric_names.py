"""The metrics that a configuration can name, by task: a misspelt one is found before anything slow is imported."""

from typing import Literal

ClassificationMetric = Literal[
    "accuracy",
    "macro_f1",
    "micro_f1",
    "auroc",
    "auprc",
    "sensitivity",
    "specificity",
    "ece",
    "mean_absolute_error",
    "quadratic_weighted_kappa",
    "entity_f1",
]

GenerationMetric = Literal[
    "bleu",
    "chrf",
    "ter",
    "exact_match",
    "word_f1",
    "token_accuracy",
    "length_to_failure",
    "cer",
    "wer",
    "bleu_1",
    "bleu_2",
    "bleu_3",
    "bleu_4",
    "rouge_l",
    "cider",
    "distinct_1",
    "distinct_2",
    "unknown_words",
    "aer",
    "pointing",
    "weight_in_box",
]

LanguageModellingMetric = Literal["perplexity", "word_perplexity", "bits_per_byte", "accuracy"]

PretrainingMetric = Literal["masked_accuracy", "masked_perplexity", "next_accuracy"]

RatingMetric = Literal["mse", "rmse", "mae", "r2", "pearson", "spearman", "pairwise_accuracy"]

RecommendationMetric = Literal[
    "mse",
    "rmse",
    "mae",
    "r2",
    "pearson",
    "spearman",
    "pairwise_accuracy",
    "ndcg@10",
    "recall@10",
    "sampled_ndcg@10",
    "sampled_recall@10",
]

SpanMetric = Literal["exact_match", "f1"]

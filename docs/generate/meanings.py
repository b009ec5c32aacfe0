"""What keys mean that have no docstring in the code yet, and what the options of protocols mean.

A docstring beside a key in its class comes first; what is said here is then not used. Classes by name -> key -> meaning.
Options of protocols: `protocol.option`, or `option` where it means the same in every protocol.
"""

from __future__ import annotations

MEANINGS: dict[str, dict[str, str]] = {
    "Sampling": {
        "top_p": "Sample from the likeliest tokens that have this probability together; 1 is all of them.",
        "max_tokens": "Longest reply. A reply that reaches it is cut and marked so.",
        "stop": "Strings that end a reply.",
    },
    "LocalModel": {
        "dtype": "Number format of the weights. `auto`: the checkpoint's, or float32 on a CPU that cannot compute in it.",
    },
}

OPTIONS: dict[str, str] = {
    "quote_limit": "Characters of each reply that others are shown; the middle of longer ones is cut out.",
    "base": "The helper that holds the base model.",
    "encoder": "A local model whose hidden states describe questions, in place of TF-IDF.",
    "rounds": "Rounds in which seats speak, opening answers included.",
    "revise": "Prompt of a revision; must contain `{answers}`.",
    "verdict": "Prompt of the judge; must contain `{answers}`.",
    "final": "Who decides: a vote of the last answers, or the role `judge`.",
    "scale": "Factor of what is added to the base's weights.",
    "density": "Share of each delta that stays.",
    "blackboard.quorum": "Seats that must agree to end early; at most as many as have an answer.",
    "blackboard.most_posts": "Posts on the board that are shown, the latest ones.",
    "blackboard.post": "Prompt of a post; must contain `{board}`.",
    "cascade.confidence": "What a seat says of its own answer, or the mean probability of its tokens (local models).",
    "cascade.threshold": "An answer at least this confident is final. Without it: fitted on dev items, or 0.5.",
    "cascade.costs": "Seat to its cost; the cheapest is asked first. Without it: the weakest on dev first.",
    "cascade.report": "Prompt that asks for the confidence.",
    "contrastive.strength": "How strongly the best is pushed away from the worst.",
    "contrastive.plausible": "Tokens count whose probability is at least this share of the likeliest one's.",
    "contrastive.k": "How many seats are the best, and how many the worst.",
    "dare_ties.seed": "Of the random thinning.",
    "debate.self_refine": "A seat without others to react to revises its own answer.",
    "feedback.critics": "Others that comment on each answer.",
    "feedback.rounds": "Rounds of comments and revisions.",
    "feedback.comment": "Prompt of a comment; must contain `{answer}`.",
    "feedback.revise": "Prompt of a revision; must contain `{comments}`.",
    "graph_router.neighbours": "Similar dev items that each item is tied to.",
    "graph_router.restart": "How soon the walk returns to the question; near 1 only direct neighbours count.",
    "knowledge_cards.own_card": "The answerer writes a card, too.",
    "knowledge_cards.card": "Prompt of a card.",
    "knowledge_cards.answer": "Prompt of the answer; must contain `{cards}`.",
    "logit_fusion.how": "The mean of the members' probabilities, or their product.",
    "logit_fusion.weights": "Seat to its weight; equal without.",
    "mixture_of_agents.layers": "How often seats propose before the aggregator writes.",
    "mixture_of_agents.aggregate": "Prompt of the aggregator.",
    "nudging.threshold": "The second seat supplies a token whose likeliest candidate has less probability than this.",
    "prompt_router.route": "Prompt of the router; must contain `{models}`.",
    "rank_and_fuse.ranking": "Every pair is compared, or the whole list at once.",
    "rank_and_fuse.top_k": "Answers that go to the fuser.",
    "rank_and_fuse.compare": "Prompt that compares two answers.",
    "rank_and_fuse.rank": "Prompt that ranks a list.",
    "rank_and_fuse.fuse": "Prompt of the fuser.",
    "self_consistent_mux.samples": "Answers that each seat samples.",
    "structured.structure": "Who hears whom: a shape, a matrix (row i hears column j), or names (`{editor: [solver]}`).",
    "switch_generation.segment": "Tokens of one turn.",
    "switch_generation.turns": "Turns of each seat, at most.",
    "switch_generation.go_on": "Prompt that asks for the next segment.",
    "trained_aggregator.aggregator": "The seat that only aggregates. Without it the role `aggregator` does.",
    "trained_aggregator.samples": "Answers of each seat that the aggregator reads.",
    "trained_aggregator.aggregate": "Prompt of the aggregator; must contain `{answers}`.",
}

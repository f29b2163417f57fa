"""How other data is read for a model, or beside the data of a training."""


def as_in(columns, real, label, categories, classes=0, weight=None, resize=None,
          features=0, rules="", date_format=None, tokens=None, context=0, tokenizer=None, texts=()):
    """The options with which other data is read as the training data was.

    `categories`: for each feature its name, or None, and how many categories it has. `weight`: the
    column of weights, or None. Other data has none. `resize`: how images were resized, or None.
    `features`: how many the training data has. `rules`: of reading, as a recipe names them.
    `date_format`: of dates in text, or None. `tokens`: how they were made, or None. `context`: of a
    corpus, else 0. `tokenizer`: its text, or None. `texts`: for each feature whether it holds texts,
    which are categories, too."""
    known = {"task": "regress"} if real else {"expected_task": "classify"}
    known["expected_rules"] = rules
    given = {"date_format": date_format, "expected_tokens": tokens, "expected_context": context,
             "expected_tokenizer": tokenizer, "classes": classes, "expected_weight": weight,
             "expected_resize": resize, "expected_features": features}
    known.update({word: value for word, value in given.items() if value})
    if label is not None:
        known["expected_label"] = label
    named = any(name is not None for name, _ in categories)
    for word, chosen in ("expected_categories", [count for _, count in categories]), ("expected_text", texts):
        places = [(k, name) for k, ((name, _), its) in enumerate(zip(categories, chosen), 1) if its]
        if places:
            known[word] = ",".join(('"' + (name or "").replace('"', '""') + '",' if named else "") + str(k)
                                   for k, name in places)
    return {**known, **columns}

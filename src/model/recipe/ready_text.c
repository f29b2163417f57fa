#include "model/recipe/ready_text.h"

#include "model/recipe/defaults.h"

void qn__ready_text(const qn__ready *ready, const qn__labels_like *labels, qn__text *text) {
    char last[QN__DEFAULT_LAST_CAPACITY];
    const int segments = labels->task == QN__TASK_CLASSIFY && qn__ready_segments(ready);
    qn__default_last(segments ? QN__TASK_SEGMENT : labels->task, labels->loss, labels->classes,
                     last);
    for (size_t i = 0; i < sizeof ready->body / sizeof *ready->body && ready->body[i]; ++i)
        qn__text_add(text, "%s", ready->body[i]);
    qn__text_add(text, "; %s", last);
}

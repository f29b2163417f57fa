#include "model/exchange/layers_alike.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "model/formats/model.h"
#include <string.h>

char *qn__exported_text(qn__layer_text layer) {
    qn__text text = {0};
    layer.dropout = 0;
    layer.drop_path = 0;
    qn__network_layer_text(&layer, &text);
    return qn__text_take(&text, NULL);
}

int qn__layers_alike(qn__layer_text one, qn__layer_text other) {
    char *a = qn__exported_text(one), *b = qn__exported_text(other);
    const int alike = a && b && strcmp(a, b) == 0;
    qn__free(a);
    qn__free(b);
    return alike;
}

#include "job/user_program_parts.h"

int qn__user_has_halo(const qn__user_source *s) {
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_HALOED)
            return 1;
    return 0;
}

int qn__user_is_marked(const qn__user_part *p) {
    return p->use == QN__USER_MIN || p->use == QN__USER_MAX || p->bins > 0;
}

const char *qn__user_mark_of(const qn__user_part *p) { return p->bins > 0 ? "int32_t" : "uint8_t"; }

uint32_t qn__user_halo_reach(const qn__user_source *s) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->parts; i++)
        if (s->part[i].use == QN__USER_HALOED && s->part[i].halo > most)
            most = s->part[i].halo;
    return most;
}

void qn__user_write_stores(const qn__user_source *s, const char *at, qn__text *t) {
    for (uint32_t i = 0; i < s->parts; i++) {
        const qn__user_part *p = &s->part[i];
        if (!qn__user_use_is_result(p->use))
            continue;
        if (qn__user_type_is_real(p->type))
            qn__text_add(t,
                         p->use == QN__USER_SUM ? "        nan_%s |= -!(o_%s - o_%s == 0);\n"
                                                : "        nan_%s |= -(o_%s != o_%s);\n",
                         p->name, p->name, p->name);
        qn__text_add(t, "        a_%s[%s + %s] = o_%s;\n", p->name,
                     p->use == QN__USER_OUTPUT ? "item" : "done", at, p->name);
        if (qn__user_is_marked(p))
            qn__text_add(t, "        b_%s[done + %s] = h_%s;\n", p->name, at, p->name);
    }
}

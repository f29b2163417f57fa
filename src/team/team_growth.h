/* What a team keeps of sequences that grow (team_extend.c): who has them, and their tokens. */
#ifndef QN_TEAM_TEAM_GROWTH_H
#define QN_TEAM_TEAM_GROWTH_H

#include "num/program.h"
#include "base/error.h"

#define QN__NOBODY UINT32_MAX
#define QN__NOT_NOW UINT32_MAX

/* The rows that a member computes next. */
typedef struct qn__grown_rows {
    uint32_t *token, *sequence, *position;
    uint32_t *from; /* the rows of the extension */
    uint32_t count;
    float *logits; /* space for them; NULL: there is one member only */
} qn__grown_rows;

typedef struct qn__grown {
    uint32_t member; /* which has it, or QN__NOBODY */
    uint32_t read;   /* positions that this member has computed */
    uint32_t first;  /* its first position in this extension, or QN__NOT_NOW */
    int active;      /* the last extension with logits had a row of it */
} qn__grown;

typedef struct qn__growth {
    qn__grown *sequence;
    uint32_t *token;      /* [sequences][positions]: those that were read */
    qn__grown_rows *rows; /* of each member */
    uint32_t members;
    int tried; /* 1: speeds were measured */
} qn__growth;

/* Makes it, unless it is there already. Fails with QN_MEMORY; freed in any case. */
qn_status qn__team_growth(const qn__program *program, uint32_t members, qn__growth **out,
                          qn_error *err);
void qn__team_growth_free(qn__growth *growth); /* accepts NULL */

#endif

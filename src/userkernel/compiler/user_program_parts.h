/* Parts of a user kernel's program that are the same for the loops of a processor and for the items
 * of a device. */
#ifndef QN_USERKERNEL_COMPILER_USER_PROGRAM_PARTS_H
#define QN_USERKERNEL_COMPILER_USER_PROGRAM_PARTS_H

#include "userkernel/language/user_source.h"

int qn__user_has_halo(const qn__user_source *source);
/* 1: a variable is an array, which is not constant. */
int qn__user_has_own_array(const qn__user_source *source);
uint32_t qn__user_halo_reach(const qn__user_source *source); /* the largest of its halos */
/* MIN and MAX know which items took part, and arrays of sums in which bin; -1 is none. The type of
 * such a mark. */
int qn__user_is_marked(const qn__user_part *part);
const char *qn__user_mark_of(const qn__user_part *part);

/* The functions that read arrays. */
void qn__user_write_readers(const qn__user_source *source, qn__text *out);
/* The parameters of the body, as a macro defined before it. */
void qn__user_write_parameters(const qn__user_source *source, qn__text *out);
/* The variables for an item's results, o_NAME and h_NAME. */
void qn__user_write_results(const qn__user_source *source, qn__text *out);
/* The call of the body, which notes in `fault` what is wrong, for the item number item + k, in the
 * column i2 + k of its row. `inner`: whether its neighbours exist in all dimensions but the last, a
 * comma, and whether they exist in the last one. */
void qn__user_write_call(const qn__user_source *source, const char *fault, const char *inner,
                         qn__text *out);

/* The variable of a result, or of one of its numbers: o_NAME or o_NAME[2]. */
enum { QN__USER_NUMBER_NAME = QN__USER_NAME_MAX + 16 };
void qn__user_name_number(const qn__user_part *part, uint32_t number,
                          char text[QN__USER_NUMBER_NAME]);
/* Stores it in the array at an item, which is C. */
void qn__user_write_store(const qn__user_part *part, const char *item, uint32_t number,
                          qn__text *out);

/* Of a real result: the variable nan_NAME, in which a loop notes what is wrong, and, after it,
 * what is added to `found`. */
void qn__user_write_check_begin(const qn__user_source *source, uint32_t part, qn__text *out);
void qn__user_write_check_end(const qn__user_source *source, uint32_t part, qn__text *out);

/* Tests an item's results for NaN and stores them at item + AT and done + AT; `at` is C. */
void qn__user_write_stores(const qn__user_source *source, const char *at, qn__text *out);

/* Random numbers, in all languages, after the functions of section 21. */
const char *qn__user_random_text(void);

#endif

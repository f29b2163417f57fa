/* The functions of a user kernel as a tree, which the parser makes while it writes their C. The
 * writer of lanes (user_lanes.h) reads it: whether a value is the same for all items is known only
 * at the end of the kernel. */
#ifndef QN_USERKERNEL_LANGUAGE_USER_TREE_H
#define QN_USERKERNEL_LANGUAGE_USER_TREE_H

#include "base/text/text.h"
#include "userkernel/language/user_token.h"
#include "userkernel/language/user_types.h"

typedef enum qn__user_node_kind {
    QN__NODE_NONE,
    /* expressions */
    QN__NODE_LITERAL, /* what: its C among the words */
    QN__NODE_NAME,    /* what: the variable; flag: in the loop that it counts */
    QN__NODE_ELEMENT, /* what: the variable; child 0: the index */
    QN__NODE_READ,    /* what: the part; child 0: the list of indices */
    QN__NODE_LENGTH,  /* what: the part; child 0: the dimension itself */
    QN__NODE_CALL,    /* what: the function's name among the words; child 0: arguments */
    QN__NODE_BUILTIN, /* the same; the arguments have the type of the value */
    QN__NODE_DRAW,    /* the same; child 0: the number of the draw */
    QN__NODE_CONVERT, /* child 0 */
    QN__NODE_UNARY,   /* sign; child 0 */
    QN__NODE_BINARY,  /* sign; children 0 and 1, which are computed in the type `common` */
    QN__NODE_CHOOSE,  /* child 0: the condition; 1 and 2 */
    /* statements */
    QN__NODE_BLOCK,   /* child 0: the list of statements */
    QN__NODE_DECLARE, /* what: the variable; child 0: its value, or the list of elements */
    QN__NODE_ASSIGN,  /* what: the variable; child 0: the value; 1: the index */
    QN__NODE_RESULT,  /* what: the part; child 0: the value; 1: the bin */
    QN__NODE_IF,      /* children: condition, branch, other branch */
    QN__NODE_LOOP,    /* children: first statements, condition, body, last statements; what: 0, or
                       * 1 + the variable that counts its rounds (by qn__user_lanes_plan) */
    QN__NODE_DO,      /* the same, without first and last statements */
    QN__NODE_BREAK,
    QN__NODE_CONTINUE,
    QN__NODE_RETURN
} qn__user_node_kind;

/* Nodes are numbered from 1; 0 is none. */
typedef struct qn__user_node {
    qn__user_node_kind kind;
    qn__user_type type, common;
    uint32_t what, child[4];
    uint32_t next;   /* in a list */
    uint32_t number; /* of RESULT: 1 + the component, where the text has its number */
    char sign[3];
    unsigned char flag; /* of BUILTIN: 1: of docs/exactness.md, section 21; of CALL: it draws */
    /* By qn__user_lanes_plan: 1: differs between items; of a loop: see there; of an assignment: 1:
     * all lanes may take the value. */
    unsigned char varies;
} qn__user_node;

typedef struct qn__user_variable {
    char name[QN__USER_NAME_MAX + 1];
    qn__user_type type;
    uint32_t length;     /* of an array */
    unsigned char table; /* 1: constants of the file */
    /* By qn__user_lanes_plan: */
    unsigned char varies;
    unsigned char away;     /* 1: it is read in several loops, or outside of loops */
    unsigned char declared; /* 1: by the kernel */
    unsigned char unequal;  /* 1: the value of the declaration differs between items */
    unsigned char counts;   /* 1: it counts the rounds of the loop that is being analysed */
    uint32_t level;
    uint32_t home;     /* the loop in which it is read; 0: none */
    uint32_t loops;    /* around its declaration */
    uint32_t assigned; /* how often, in the text */
} qn__user_variable;

/* Start with {0}. `failed` is 1 when memory was short; later additions do nothing. */
typedef struct qn__user_tree {
    qn__user_node *node;
    qn__user_variable *variable;
    uint32_t nodes, node_capacity, variables, variable_capacity;
    uint32_t body; /* of the kernel */
    /* By qn__user_lanes_plan: */
    int lanes;        /* 1: items are computed in the lanes of vectors */
    int forced;       /* 1: also where the processor has no vectors for it */
    int leaves;       /* 1: some items may return before others */
    uint32_t wide;    /* bytes of the values that vary in loops: 8 or 4 */
    uint32_t vectors; /* of a variable */
    qn__text words;
    int failed;
} qn__user_tree;

void qn__user_tree_release(qn__user_tree *tree);

static inline int qn__user_is_loop(const qn__user_node *n) {
    return n->kind == QN__NODE_LOOP || n->kind == QN__NODE_DO;
}

/* Adds a node; 0 when memory is short. */
uint32_t qn__user_tree_add(qn__user_tree *tree, qn__user_node node);
/* Adds `item` at the end of a list, which may be 0; returns the list. */
uint32_t qn__user_tree_join(qn__user_tree *tree, uint32_t list, uint32_t item);
uint32_t qn__user_tree_word(qn__user_tree *tree, const char *word, size_t size);
/* Adds a variable and returns its number. */
uint32_t qn__user_tree_variable(qn__user_tree *tree, const char *name, qn__user_type type);

#endif

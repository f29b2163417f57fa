#include "confusion.h"
#include "jsonline.h"
#include "plain.h"
#include <inttypes.h>
#include <stdio.h>

enum {
    WIDEST_TABLE = 20,
    LONGEST_LIST = 20,
    LONGEST_NAME = 16,
    NAME_CAPACITY = 4 * LONGEST_NAME + 1
};

/* Whether a byte begins a character of UTF-8. */
static int begins(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

static int characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += begins(*text);
    return count;
}

/* The name of a class, or its number: cut to LONGEST_NAME characters, and without what a terminal
 * would obey. */
static const char *name_of(const qn_train_report *r, uint32_t class, char text[NAME_CAPACITY]) {
    size_t used = 0;
    int count = 0;
    if (class >= r->class_names) {
        snprintf(text, NAME_CAPACITY, "%" PRIu32, class);
        return text;
    }
    for (const char *c = r->class_name[class]; *c && used + 1 < NAME_CAPACITY; c++) {
        count += begins(*c);
        if (count > LONGEST_NAME)
            break;
        text[used++] = *c;
    }
    text[plain_copy(text, text, used, "")] = '\0';
    return text;
}

/* Characters of the longest name; at least `least`. */
static int widest_name(const qn_train_report *r, int least) {
    char text[NAME_CAPACITY];
    for (uint32_t c = 0; c < r->classes; c++) {
        const int width = characters(name_of(r, c, text));
        least = width > least ? width : least;
    }
    return least;
}

/* Prints a text with blanks in front of it; `printf` would count bytes. */
static void print_right(const char *text, int width) {
    printf("%*s%s", width > characters(text) ? width - characters(text) : 0, "", text);
}

static double percent(uint64_t part, uint64_t whole) {
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Characters of a column: its name, and the largest number in any of them. */
static int width_of_columns(const qn_train_report *r) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < r->classes * r->classes; i++)
        most = r->confusion[i] > most ? r->confusion[i] : most;
    const int width = snprintf(NULL, 0, "%" PRIu64, most) + 2, name = widest_name(r, 2) + 2;
    return name > width ? name : width;
}

static void print_row(const qn_train_report *r, uint32_t label, int width) {
    const uint64_t *row = r->confusion + (size_t)label * r->classes;
    uint64_t sum = 0;
    for (uint32_t j = 0; j < r->classes; j++) {
        sum += row[j];
        if (row[j] > 0)
            printf("%*" PRIu64, width, row[j]);
        else
            printf("%*s", width, "."); /* a dot for zero, so that other numbers stand out */
    }
    if (sum > 0)
        printf("   %6.2f %%\n", percent(row[label], sum));
    else
        printf("   %8s\n", "-");
}

/* Rows are labels, columns predictions; the diagonal is correct. */
static void print_table(const qn_train_report *r) {
    const int width = width_of_columns(r), first = widest_name(r, 5);
    char name[NAME_CAPACITY];
    printf("\n%-*s  predicted\n%*s", first, "label", first + 1, "");
    for (uint32_t j = 0; j < r->classes; j++)
        print_right(name_of(r, j, name), width);
    printf("   accuracy\n");
    for (uint32_t i = 0; i < r->classes; i++) {
        print_right(name_of(r, i, name), first);
        putchar(' ');
        print_row(r, i, width);
    }
}

typedef struct mistake {
    uint64_t count;
    uint32_t label, predicted;
} mistake;

/* Keeps the list sorted, most frequent first; ties in order of insertion. */
static int insert_mistake(mistake *list, int used, mistake m) {
    int at = used;
    while (at > 0 && list[at - 1].count < m.count)
        at--;
    if (at >= LONGEST_LIST)
        return used;
    int last = used < LONGEST_LIST ? used : LONGEST_LIST - 1;
    for (int i = last; i > at; i--)
        list[i] = list[i - 1];
    list[at] = m;
    return used < LONGEST_LIST ? used + 1 : used;
}

/* With many classes a table does not fit: prints the most frequent mistakes. */
static void print_mistakes(const qn_train_report *r) {
    mistake list[LONGEST_LIST];
    char name[NAME_CAPACITY];
    int used = 0;
    for (uint32_t i = 0; i < r->classes; i++)
        for (uint32_t j = 0; j < r->classes; j++) {
            uint64_t n = r->confusion[(size_t)i * r->classes + j];
            if (i != j && n > 0)
                used = insert_mistake(list, used, (mistake){n, i, j});
        }
    const int label = widest_name(r, 5), predicted = widest_name(r, 9);
    if (used > 0)
        printf("\nmost frequent confusions\n  %*s  %*s  times\n", label, "label", predicted,
               "predicted");
    for (int i = 0; i < used; i++) {
        printf("  ");
        print_right(name_of(r, list[i].label, name), label);
        printf("  ");
        print_right(name_of(r, list[i].predicted, name), predicted);
        printf("  %5" PRIu64 "\n", list[i].count);
    }
}

void confusion_print(const qn_train_report *r) {
    if (r->confusion && r->classes > 0 && r->classes <= WIDEST_TABLE)
        print_table(r);
    else if (r->confusion)
        print_mistakes(r);
}

void confusion_fields(const qn_train_report *r) {
    json_open("class_names", '[');
    for (uint32_t i = 0; i < r->class_names; i++)
        json_text(NULL, r->class_name[i]);
    json_close(']');
    if (!r->confusion) {
        json_text("confusion", NULL);
        return;
    }
    json_open("confusion", '[');
    for (uint32_t i = 0; i < r->classes; i++) {
        json_open(NULL, '[');
        for (uint32_t j = 0; j < r->classes; j++)
            json_count(NULL, r->confusion[(size_t)i * r->classes + j]);
        json_close(']');
    }
    json_close(']');
}

/* One JSON object per line on stdout, for programs that follow a run.
 *
 *       json_begin("epoch");            {"event":"epoch"
 *       json_count("epoch", 3);         ,"epoch":3
 *       json_open("confusion", '[');    ,"confusion":[
 *       json_count(NULL, 980);          980
 *       json_close(']');                ]
 *       json_end();                     }\n, and flushed
 *
 * Keys are NULL inside an array. */
#ifndef APP_JSONLINE_H
#define APP_JSONLINE_H

#include <stdint.h>

void json_begin(const char *event);
void json_text(const char *key, const char *value); /* a NULL value is null */
/* The same for a message of the library, with options in place of its names (fields.h). */
void json_message(const char *key, const char *text);
void json_count(const char *key, uint64_t value);
void json_number(const char *key, double value); /* NaN and infinities become null */
/* A number, or any other value in JSON, as it is written; "" is null. */
void json_value(const char *key, const char *value);
void json_flag(const char *key, int value); /* true or false */
void json_open(const char *key, char bracket);
void json_close(char bracket);
void json_end(void);

#endif

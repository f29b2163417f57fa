/* The standard output, whose first failure is kept until the program ends (message_output). */
#ifndef APP_OUTPUT_H
#define APP_OUTPUT_H

/* Flushes stdout; keeps the first error. */
void output_flush(void);

/* Records an errno of a failed write. */
void output_lost(int why);

/* The errno of the first failed write; 0: none. */
int output_failure(void);

#endif

/* What a model file holds, for quern model show. */
#ifndef APP_MODEL_ABOUT_H
#define APP_MODEL_ABOUT_H

/* Prints it. Returns the exit code. */
int model_about(const char *path, int json);

#endif

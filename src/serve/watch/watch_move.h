/* Files that are done go to another folder. */
#ifndef QN_SERVE_WATCH_MOVE_H
#define QN_SERVE_WATCH_MOVE_H

/* Moves the file `name` of the folder `from` to the folder `to`, under the same name with the
 * folders in it, or with "~1" at its end where that name is taken. A file that is gone is moved.
 * Between file systems it is copied, stored safely and then removed. 0, or an errno. */
int qn__watch_move(int from, int to, const char *name);

#endif

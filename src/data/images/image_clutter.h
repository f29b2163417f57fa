/* Clutter: files that are often found beside images and are not images, such as notes, lists and
 * files of the operating system. */
#ifndef QN_DATA_IMAGES_IMAGE_CLUTTER_H
#define QN_DATA_IMAGES_IMAGE_CLUTTER_H

/* Whether a name, which may have folders before it, is one of the table of docs/exactness.md
 * 2.1.10. A file with such a name that begins as an image does is an image, not clutter. */
int qn__image_is_clutter(const char *name);

#endif

/* The page at / of a server, on which a person asks its models, and what it has to know of them. */
#ifndef QN_SERVE_PAGE_TRY_PAGE_H
#define QN_SERVE_PAGE_TRY_PAGE_H

#include "serve/http/server.h"
#include "serve/models/models.h"

/* Adds the routes; before qn__http_start. `models` must outlive the server. */
void qn__try_page_add(qn__http *http, qn__models *models);

/* Appends a model as a JSON object:
 *   name, version, digest, about   texts
 *   takes      "image", "rows", "text" or "next"; null: nothing that a page has
 *   shape      [channels, rows, columns] of an image; else null
 *   resizes    whether images of any size become such
 *   features   numbers of an item
 *   columns    [{"name": "age"}, {"name": "city", "categories": ["Bern", ...]}, {"name": "note",
 *              "text": true}, {"name": "day", "date": true}]; null: they have no names
 *   classes    names; null: numbers */
void qn__try_page_model(qn__text *text, const qn__served *served);

#endif

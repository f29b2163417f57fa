/* The rendezvous address of the ranks of an srun step, from Slurm's environment variables. */
#ifndef QN_CLUSTER_RENDEZVOUS_SLURM_H
#define QN_CLUSTER_RENDEZVOUS_SLURM_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The first host of a Slurm node list: "n[03-05,9],m" gives "n03". 0 if the list is malformed or
 * the name does not fit. */
int qn__slurm_first_node(const char *list, char *name, size_t capacity);

/* The host of rank 0 (256 bytes; 127.0.0.1 in a step of one node), and a port that other steps do
 * not use unless their job numbers differ by a multiple of 15000. */
qn_status qn__slurm_place(char *host, uint16_t *port, qn_error *err);

/* "12.0": job and step; `run` has space for 64 bytes. */
void qn__slurm_run(char *run);

#endif

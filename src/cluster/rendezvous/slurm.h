/* The rendezvous address of the ranks of a step of srun, by what Slurm tells each of them. */
#ifndef QN_CLUSTER_RENDEZVOUS_SLURM_H
#define QN_CLUSTER_RENDEZVOUS_SLURM_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The first of a list of nodes in Slurm's way of writing: "n[03-05,9],m" gives "n03". 0 when it is
 * no such list or the name is longer than fits. */
int qn__slurm_first_node(const char *list, char *name, size_t room);

/* The host of rank 0 (256 bytes; 127.0.0.1 in a step of one node) and a port that other steps do
 * not use, unless two numbers of jobs lie 15000 apart. */
qn_status qn__slurm_place(char *host, uint16_t *port, qn_error *err);

/* "12.0": the numbers of job and step; `run` has room for 64 bytes. */
void qn__slurm_run(char *run);

#endif

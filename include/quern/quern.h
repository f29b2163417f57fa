/* All of Quern's public API. */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include <quern/advise.h>
#include <quern/arrow.h>
#include <quern/choices.h>
#include <quern/cluster.h>
#include <quern/convert.h>
#include <quern/data.h>
#include <quern/defaults.h>
#include <quern/description.h>
#include <quern/device.h>
#include <quern/evaluate.h>
#include <quern/export.h>
#include <quern/files.h>
#include <quern/fit.h>
#include <quern/generate.h>
#include <quern/import.h>
#include <quern/kernel.h>
#include <quern/linear.h>
#include <quern/model.h>
#include <quern/network.h>
#include <quern/option.h>
#include <quern/plan.h>
#include <quern/predict.h>
#include <quern/report.h>
#include <quern/runs.h>
#include <quern/score.h>
#include <quern/search.h>
#include <quern/serve.h>
#include <quern/statistics.h>
#include <quern/status.h>
#include <quern/structure.h>
#include <quern/tokenizer.h>
#include <quern/train.h>
#include <quern/version.h>
#include <quern/watch.h>

#endif

/* The names of Quern's options and commands in PyTorch, Keras, scikit-learn, XGBoost, torchrun,
 * mpirun, Slurm and others. The message for such a name gives Quern's. */

#include "synonyms.h"
#include "suggest.h"
#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 80, LONGEST_NAME = 64 };

/* Names without any dashes: "num-epochs" is "numepochs". */
typedef struct synonym {
    const char *names;  /* separated by blanks */
    const char *option; /* of Quern; NULL: none */
    const char *note;   /* its use, or why there is none; may be NULL */
} synonym;

/* Of several rows with one name the first applies whose option the command has. Options of a
 * training have more names in their own rows (<quern/option.h>). */
static const synonym synonyms[] = {
    {"lrdecay gamma decayrate lrdecayrate lrfactor", "lr-gamma", "with --schedule step"},
    {"lrdecayepochs decaysteps lrstepsize lrdropevery", "lr-step", "with --schedule step"},
    {"warmupsteps numwarmupsteps warmupepochs warmupratio warmupproportion", "warmup",
     "it counts steps"},
    {"hidden hiddensize hiddenlayers hiddenlayersizes layers numlayers units neurons width arch "
     "architecture network net activation dropout dropoutrate",
     "model", "such as --model \"dense 500 relu dropout 0.2; dense 10 softmax\""},
    {"tol ftol gtol xtol", "tolerance", "with --optimizer lbfgs"},
    {"lasso l1ratio l1reg l1penalty regalpha l1regularization", "l1", "with --optimizer lbfgs"},
    {"clipvalue clipgradvalue", "clip", "it limits the norm, not each value"},
    {"gradientaccumulationsteps accumulategradbatches gradaccum accumulate microbatch "
     "microbatchsize microbatches",
     "parts", "--batch counts the items of all parts"},
    {"patience earlystoppingrounds niternochange earlystop", "early-stopping",
     "it needs --valid FRACTION"},
    {"warmstart pretrained finetune initmodel loadweights initialmodel weights startfrom",
     "init-from", NULL},
    {"sampleweight sampleweights weightcolumn weightcol weightscolumn itemweight itemweights "
     "instanceweight instanceweights exampleweight caseweight",
     "weight", NULL},
    {"classweights balanced balance scaleposweight posweight isunbalance autoclassweights",
     "class-weight", "such as --class-weight balanced"},
    {"augmentation dataaugmentation aug transform transforms randomcrop hflip randomflip cutout "
     "randaugment autoaugment randomresizedcrop resizedcrop colorjitter colourjitter rotation "
     "randomrotation gaussianblur",
     "augment", "such as --augment \"pad 4; crop; flip\""},
    {"shuffle noshuffle", NULL, "each epoch has an order of its own, which --seed decides"},
    {"metrics metric evalmetric", NULL, "loss and accuracy are reported for each of the --epochs"},

    {"train traindata traindir trainfile trainingdata trainset input inputfile in dataset datapath "
     "datadir file x i d",
     "data", NULL},
    {"target targets targetcolumn labelcolumn labelcol labelname ycol y", "label", NULL},
    {"labelfile labelsfile trainlabels", "labels", NULL},
    {"testdata testfile testset testdir", "test", NULL},
    {"valsplit validationsplit validsplit valfraction validationfraction testsize devsize holdout "
     "valsize split",
     "valid", "a fraction such as --valid 0.1 sets that part of the training data aside"},
    {"val validation validationdata valdata validdata evaldata evalset eval dev devset validset",
     "valid", NULL},
    {"sep separator delimiter delim fieldseparator", NULL,
     "the separator of a CSV file is found from its content: comma, semicolon or tab"},
    {"noheader hasheader skiprows headers", "header", "such as --header yes or --header no"},
    {"usecols columns cols featurecolumns featurenames", "features", NULL},
    {"dropcolumns dropcols exclude excludecolumns ignore ignorecolumns", "drop", NULL},
    {"problem problemtype tasktype objectivetype regression classification", "task",
     "such as --task regress"},
    {"format inputformat dataformat type", NULL, "the format is found from the file's content"},
    {"nolabels nolabel hasnolabels", "unlabelled", NULL},
    {"proba probabilities predictproba probs scores", "outputs", NULL},
    {"n num number count samples numsamples nsamples limit", "items", NULL},
    {"offset start skip", "first", NULL},

    {"out outfile outputfile outputpath save saveto savepath savemodel modelpath modelfile "
     "modelout export",
     "output", NULL},
    {"outputdir logdir log logs logfile tensorboard tensorboarddir", "run-dir", NULL},
    {"checkpointdir checkpointpath ckpt ckptdir ckptpath savedir", "checkpoint", NULL},
    {"savesteps saveevery savefreq savefrequency saveinterval checkpointinterval checkpointfreq "
     "everynepochs",
     "checkpoint-every", NULL},
    {"resumefromcheckpoint resumefrom restore restart continue loadcheckpoint", "resume",
     "it continues from the folder of --checkpoint"},
    {"profile profiler timeline", "trace", NULL},
    {"silent q s", "quiet", NULL},
    {"v vv debug loglevel", "verbose", NULL},

    {"gpus gpu ngpus numgpus gres gpuspernode gpuspertask", "gpus", NULL},
    {"gpus gpu ngpus numgpus device accelerator accelerators cuda usecuda nocuda usegpu cpuonly "
     "gpuids deviceid",
     "devices", "such as --devices cpu or --devices cuda:0; without it the fastest set is used"},
    {"cpuspertask c ncpus cores", "cpus", NULL},
    {"workers numworkers njobs jobs nthread nthreads numthreads threadcount cores numcores cpus "
     "ncpus cpuspertask j t",
     "threads", NULL},
    {"mem mempernode memorylimit", "memory", NULL},
    {"timelimit walltime maxtime", "time", NULL},
    {"jobname", "name", NULL},
    {"queue", "partition", NULL},
    {"hosts hostlist machinefile nodelist", "hostfile", NULL},
    {"nproc nprocpernode np nprocs numprocs numprocesses worldsize ntasks ntaskspernode nnodes "
     "nodes numnodes numnode",
     "ranks", NULL},
    {"noderank localrank machinerank processid procid", "rank", NULL},
    {"masteraddr masterport rdzvendpoint rdzvid coordinator coordinatoraddress distributed "
     "disturl initmethod mainprocessip host port server",
     "meet", "the address of rank 0, such as --meet node1:29500"},
    {"ifname socketifname networkinterface nic iface", "interface", NULL},
    {"timeout disttimeout ddptimeout", "rank-timeout", NULL},
    {"rdzvbackend backend distbackend distributedbackend strategy", NULL,
     "the connections between ranks need no choice of a library"},
    {"cluster hostsfile network machine machines", "team", NULL},
};

/* Names of commands; the first row that has the name is taken. */
static const struct {
    const char *names, *command;
} commands[] = {
    {"learn run optimize optimise finetune retrain start", "train"},
    {"infer inference apply classify transform", "predict"},
    {"test eval score validate metrics", "evaluate"},
    {"gridsearch grid tune cv crossvalidate crossvalidation kfold sweep hyperopt", "search"},
    {"verify check reproduce repeat rerun", "replay"},
    {"sbatch qsub batch", "submit"},
    {"mpirun mpiexec srun torchrun accelerate deepspeed ssh spawn", "launch"},
    {"queue squeue qstat ps list status", "jobs"},
    {"info inspect describe show head summary", "data info"},
    {"synth synthesize generate digits", "data synth digits"},
    {"gpu gpus hardware benchmark bench nvidiasmi clinfo", "devices"},
    {"models zoo pretrained", "model list"},
    {"network layers flops torchinfo", "model show"},
    {"import statedict frompytorch torch", "model import"},
    {"merge mergeandunload fuse", "model merge"},
    {"tensorboard mlflow wandb", "runs export"},
    {"export onnx convert toonnx freeze", "model export"},
    {"estimate simulate profile cost", "plan"},
    {"v about", "version"},
    {"man usage commands", "help"},
};

/* Letters and digits of a name in lower case, without its dashes and its value. */
static void bare_name(const char *word, char *text) {
    size_t used = 0;
    for (; *word && *word != '=' && used + 1 < LONGEST_NAME; word++) {
        const char c = *word >= 'A' && *word <= 'Z' ? (char)(*word + 32) : *word;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            text[used++] = c;
    }
    text[used] = '\0';
}

static int is_listed(const char *list, const char *word) {
    const size_t size = strlen(word);
    while (size > 0 && *list) {
        const size_t length = strcspn(list, " ");
        if (length == size && memcmp(list, word, size) == 0)
            return 1;
        list += length + (list[length] == ' ');
    }
    return 0;
}

static int has_option(const command *self, const char *name) {
    option_row row;
    for (int i = 0; options_row(self->options, i, &row); i++)
        if (strcmp(row.option->name, name) == 0)
            return 1;
    return 0;
}

/* The option whose own name differs in case, dashes or underscores only ("--Run_Dir"), or NULL. */
static const char *same_name(const command *self, const char *typed) {
    option_row row;
    char own[LONGEST_NAME];
    for (int i = 0; options_row(self->options, i, &row); i++) {
        bare_name(row.option->name, own);
        if (strcmp(own, typed) == 0)
            return row.option->name;
    }
    return NULL;
}

/* Whether the command has every option in a note. */
static int note_fits(const command *self, const char *note) {
    char name[LONGEST_NAME];
    for (const char *at = note; at && (at = strstr(at, "--")) != NULL; at += 2) {
        snprintf(name, sizeof name, "%.*s",
                 (int)strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-0123456789"), at + 2);
        if (!has_option(self, name))
            return 0;
    }
    return 1;
}

/* A synonym with only a note applies if the command has the options in the note. */
static const synonym *find_synonym(const command *self, const char *typed) {
    static synonym of_training;
    const qn_option *o;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        const synonym *s = &synonyms[i];
        if (is_listed(s->names, typed) &&
            (s->option ? has_option(self, s->option) : note_fits(self, s->note)))
            return s;
    }
    for (uint32_t i = 0; (o = qn_train_option(i)) != NULL; i++)
        if (o->also && is_listed(o->also, typed) && has_option(self, o->name)) {
            of_training = (synonym){o->also, o->name, NULL};
            return &of_training;
        }
    return NULL;
}

/* The option that is nearest by spelling, or NULL. */
static const char *near_name(const command *self, const char *word) {
    const char *names[MOST_NAMES];
    char typed[LONGEST_NAME];
    size_t count = 0, dashes = strspn(word, "-");
    option_row row;
    for (int i = 0; options_row(self->options, i, &row) && count + 1 < MOST_NAMES; i++)
        names[count++] = row.option->name;
    names[count++] = "help";
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word + dashes, "="), word + dashes);
    return suggest(typed, names, count);
}

const char *synonym_command(const char *word) {
    char typed[LONGEST_NAME];
    bare_name(word, typed);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (is_listed(commands[i].names, typed))
            return commands[i].command;
    return NULL;
}

void synonym_advice(const command *self, const char *word, char *remedy, size_t size) {
    char typed[LONGEST_NAME];
    bare_name(word, typed);
    const char *near = same_name(self, typed);
    const synonym *s = near ? NULL : find_synonym(self, typed);
    if (!near && !s)
        near = near_name(self, word);
    const char *note = s && s->note && note_fits(self, s->note) ? s->note : NULL;
    if (s && s->option)
        snprintf(remedy, size, "Quern calls it --%s%s%s. \"quern %s --help\" lists the options",
                 s->option, note ? ": " : "", note ? note : "", self->name);
    else if (s)
        snprintf(remedy, size, "%s. \"quern %s --help\" lists the options", s->note, self->name);
    else if (near)
        snprintf(remedy, size, "did you mean --%s? \"quern %s --help\" lists the options", near,
                 self->name);
    else
        snprintf(remedy, size, "\"quern %s --help\" lists the options", self->name);
}

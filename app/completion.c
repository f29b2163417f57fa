/* Completions for bash, zsh and fish, generated from the tables of options. */

#include "manual.h"
#include "options.h"
#include <stdio.h>
#include <string.h>

completes_to manual_completes(const option *o) {
    option_word word;
    /* Words that a text can be, too; not those that are a part of it (--model). */
    if ((o->kind == OPTION_CHOICE || o->words || o->from == QN_CHOICE_DEVICE) &&
        options_word(o, 0, &word))
        return COMPLETE_WORDS;
    if (o->kind == OPTION_FLAG || !o->value)
        return COMPLETE_NOTHING;
    if (strstr(o->value, "DIR"))
        return COMPLETE_FOLDERS;
    return strstr(o->value, "FILE") ? COMPLETE_FILES : COMPLETE_NOTHING;
}

/* Prints `text`, with `sign` before each character of `escaped`; a tab becomes a blank. */
static void put(const char *text, const char *escaped, const char *sign) {
    for (const char *p = text; *p; p++) {
        if (strchr(escaped, *p))
            fputs(sign, stdout);
        putchar(*p == '\t' ? ' ' : *p);
    }
}

/* The same inside single quotes of a POSIX shell. */
static void put_quoted(const char *text, const char *escaped) {
    for (const char *p = text; *p; p++) {
        const char letter[2] = {*p, '\0'};
        if (*p == '\'')
            fputs("'\\''", stdout);
        else
            put(letter, escaped, "\\");
    }
}

/* "data synth digits" as a part of a function's name. */
static void put_name(const char *name) {
    for (const char *p = name; *p; p++)
        putchar(*p == ' ' ? '_' : *p);
}

static void put_commands(const char *before, const char *quote) {
    for (int i = 0; all_commands[i]; i++)
        printf("%s%s%s%s", i > 0 ? before : "", quote, all_commands[i]->name, quote);
}

/* Whether the operands of a command are files: only those of `quern help` are not. */
static int takes_files(const command *c) {
    return c->operand && strcmp(c->operand, "COMMAND") != 0;
}

/* ---------------------------------------------------------------- bash */

static void bash_option(const command *c, const option *o) {
    const completes_to to = manual_completes(o);
    option_word word;
    if (o->kind == OPTION_FLAG)
        return;
    printf("    '%s --%s'", c->name, o->name);
    if (o->letter)
        printf(" | '%s -%c'", c->name, o->letter);
    printf(") %s", to == COMPLETE_WORDS     ? "words='"
                   : to == COMPLETE_FILES   ? "kind=files"
                   : to == COMPLETE_FOLDERS ? "kind=folders"
                                            : "kind=none");
    for (uint32_t i = 0; to == COMPLETE_WORDS && options_word(o, i, &word); i++)
        printf("%s%s", i > 0 ? " " : "", word.name);
    puts(to == COMPLETE_WORDS ? "' ;;" : " ;;");
}

static void bash_command(const command *c) {
    option_row row;
    printf("    '%s')\n        options='", c->name);
    for (int i = 0; options_row(c->options, i, &row); i++)
        printf("--%s ", row.option->name);
    printf("--help'\n        operands=%s ;;\n", takes_files(c) ? "files" : "none");
}

static const char bash_begin[] =
    "_quern() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command='' options='' words='' kind='' operands='' name i\n"
    "    local -a parts\n"
    "    COMPREPLY=()\n"
    "    # bash makes the sign of --name=value a word of its own.\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        cur=''\n"
    "    elif [[ $prev == '=' && COMP_CWORD -gt 2 ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n";

/* Commands that hand others over, which follow their options. */
static const struct {
    const char *name, *pattern, *words;
} handing[] = {{"submit", "train|run|serve|watch", "train run serve watch"},
               {"launch", "train|fit|predict|evaluate|generate|search|run",
                "train fit predict evaluate generate search run"}};

enum { HANDING = sizeof handing / sizeof *handing };

/* The row of a command, or -1. */
static int handing_of(const char *name) {
    for (int i = 0; i < HANDING; i++)
        if (strcmp(handing[i].name, name) == 0)
            return i;
    return -1;
}

static const char bash_find[] =
    "        read -ra parts <<<\"$name\"\n"
    "        if ((COMP_CWORD > ${#parts[@]})); then\n"
    "            [[ ${COMP_WORDS[*]:1:${#parts[@]}} == \"$name\" ]] && command=$name\n"
    "        elif [[ ${COMP_WORDS[*]:1:COMP_CWORD-1} == \"${parts[*]:0:COMP_CWORD-1}\" ]]; then\n"
    "            words+=\" ${parts[COMP_CWORD - 1]}\"\n"
    "        fi\n"
    "    done\n";

/* What follows `quern submit ... train` are the options of train, and so on. */
static void bash_handing(void) {
    for (int i = 0; i < HANDING; i++)
        printf("    if [[ $command == %s ]]; then\n"
               "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
               "            [[ ${COMP_WORDS[i]} == @(%s) ]] && command=${COMP_WORDS[i]} && break\n"
               "        done\n"
               "    fi\n",
               handing[i].name, handing[i].pattern);
}

/* The commands themselves, where they may follow. */
static void bash_handed(void) {
    for (int i = 0; i < HANDING; i++)
        printf("    %s [[ $command == %s && -z $kind$words && $cur != -* ]]; then\n"
               "        words='%s'\n",
               i == 0 ? "if" : "elif", handing[i].name, handing[i].words);
}

static const char bash_end[] =
    "    elif [[ -n $command && -z $kind$words ]]; then\n"
    "        if [[ $cur == -* ]]; then words=$options; else kind=$operands; fi\n"
    "    fi\n"
    "    case $kind in\n"
    "    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") "
    ";;\n"
    "    folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "
    "\"$cur\") ;;\n"
    "    '') mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _quern quern\n";

static void complete_bash(void) {
    option_row row;
    fputs(bash_begin, stdout);
    fputs("    for name in ", stdout);
    put_commands(" ", "'");
    printf("; do\n%s", bash_find);
    bash_handing();
    puts("    case $command in");
    for (int i = 0; all_commands[i]; i++)
        bash_command(all_commands[i]);
    puts("    esac\n    case \"$command $prev\" in");
    for (int i = 0; all_commands[i]; i++)
        for (int k = 0; options_row(all_commands[i]->options, k, &row); k++)
            bash_option(all_commands[i], row.option);
    fputs("    'help '*) [[ $cur == -* ]] || words='", stdout);
    put_commands(" ", "");
    puts("' ;;\n    esac");
    bash_handed();
    fputs(bash_end, stdout);
}

/* ---------------------------------------------------------------- zsh */

static void zsh_words(const option *o) {
    option_word word;
    fputs("((", stdout);
    for (uint32_t i = 0; options_word(o, i, &word); i++) {
        printf("%s%s\\:\"", i > 0 ? " " : "", word.name);
        put_quoted(word.about ? word.about : "", ":\"$`\\");
        putchar('"');
    }
    fputs("))", stdout);
}

static void zsh_option(const option *o) {
    char about[HELP_CAPACITY];
    const completes_to to = manual_completes(o);
    const char *equals = o->kind == OPTION_FLAG ? "" : "=";
    fputs(" \\\n        '", stdout);
    if (o->letter)
        printf("(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, *equals ? "+" : "",
               o->name, equals);
    else
        printf("%s--%s%s[", o->kind == OPTION_TEXTS ? "*" : "", o->name, equals);
    put_quoted(options_about(o, about, sizeof about), "[]:\\");
    putchar(']');
    if (o->kind != OPTION_FLAG) {
        putchar(':');
        put_quoted(o->value, ":\\");
        putchar(':');
    }
    if (to == COMPLETE_WORDS)
        zsh_words(o);
    else if (to == COMPLETE_FILES)
        fputs("_files", stdout);
    else if (to == COMPLETE_FOLDERS)
        fputs("_files -/", stdout);
    else if (o->kind != OPTION_FLAG)
        putchar(' ');
    putchar('\'');
}

static void zsh_command(const command *c) {
    option_row row;
    fputs("_quern_", stdout);
    put_name(c->name);
    puts("() {");
    const int hands = handing_of(c->name);
    if (hands >= 0)
        printf("    local -i at=${words[(i)(%s)]}\n"
               "    if (( at > 1 && at < CURRENT )); then\n"
               "        words=( \"${(@)words[at,-1]}\" )\n"
               "        (( CURRENT -= at - 1 ))\n"
               "        _quern_$words[1]\n"
               "        return\n"
               "    fi\n",
               handing[hands].pattern);
    fputs("    _arguments", stdout);
    for (int i = 0; options_row(c->options, i, &row); i++)
        zsh_option(row.option);
    fputs(" \\\n        '(-h --help)'{-h,--help}'[print the help]'", stdout);
    if (takes_files(c))
        printf(" \\\n        '%s:%s:_files'", c->most_operands > 1 ? "*" : "1", c->operand);
    if (hands >= 0)
        printf(" \\\n        '1:command:(%s)'", handing[hands].words);
    if (c->operand && !takes_files(c)) {
        fputs(" \\\n        '*:command:(", stdout);
        put_commands(" ", "");
        fputs(")'", stdout);
    }
    puts("\n}\n");
}

static const char zsh_end[] =
    "        parts=( ${(s: :)name} )\n"
    "        if (( CURRENT > $#parts + 1 )); then\n"
    "            if [[ \"${words[2,$#parts+1]}\" == \"$name\" ]]; then\n"
    "                words=( quern \"${(@)words[$#parts+2,-1]}\" )\n"
    "                (( CURRENT -= $#parts ))\n"
    "                _quern_${name// /_}\n"
    "                return\n"
    "            fi\n"
    "        elif [[ \"${words[2,CURRENT-1]}\" == \"${parts[1,CURRENT-2]}\" ]]; then\n"
    "            next+=( \"${parts[CURRENT-1]}:$about\" )\n"
    "        fi\n"
    "    done\n"
    "    _describe command next\n"
    "}\n\n_quern \"$@\"\n";

static void complete_zsh(void) {
    for (int i = 0; all_commands[i]; i++)
        zsh_command(all_commands[i]);
    puts("_quern() {\n    local name about\n    local -a parts next\n    for name about in \\");
    for (int i = 0; all_commands[i]; i++) {
        printf("        '%s' '", all_commands[i]->name);
        put_quoted(all_commands[i]->summary, "");
        puts(all_commands[i + 1] ? "' \\" : "'; do");
    }
    fputs(zsh_end, stdout);
}

/* ---------------------------------------------------------------- fish */

static void fish_option(const command *c, const option *o) {
    char about[HELP_CAPACITY];
    const completes_to to = manual_completes(o);
    option_word word;
    printf("complete -c quern -n '__quern_in \"%s\"' -l %s", c->name, o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    if (to == COMPLETE_WORDS) {
        fputs(" -x -a '", stdout);
        for (uint32_t i = 0; options_word(o, i, &word); i++) {
            printf("%s%s\\t\"", i > 0 ? " " : "", word.name);
            put(word.about ? word.about : "", "'\"$\\", "\\");
            putchar('"');
        }
        putchar('\'');
    } else if (to == COMPLETE_FILES) {
        fputs(" -r -F", stdout);
    } else if (to == COMPLETE_FOLDERS) {
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
    } else if (o->kind != OPTION_FLAG) {
        fputs(" -x", stdout);
    }
    fputs(" -d '", stdout);
    put(options_about(o, about, sizeof about), "'\\", "\\");
    puts("'");
}

static const char fish_begin[] =
    "# Whether the words before the cursor are those of a command and what follows it.\n"
    "function __quern_in\n"
    "    set -l words (commandline -opc)\n"
    "    set -l name (string split ' ' -- $argv[1])\n"
    "    set -l last (math (count $name) + 1)\n"
    "    test (count $words) -ge $last; or return 1\n";

static void fish_handing(void) {
    for (int i = 0; i < HANDING; i++)
        printf("    if test \"$words[2]\" = %s\n"
               "        for word in $words[3..]\n"
               "            if contains -- $word %s\n"
               "                test \"$argv[1]\" = $word\n"
               "                return\n"
               "            end\n"
               "        end\n"
               "    end\n",
               handing[i].name, handing[i].words);
}

static const char fish_after[] = "    test \"$words[2..$last]\" = \"$argv[1]\"\n"
                                 "end\n"
                                 "# Whether the words before the cursor are exactly these.\n"
                                 "function __quern_after\n"
                                 "    set -l words (commandline -opc)\n"
                                 "    test \"$words[2..]\" = \"$argv[1]\"\n"
                                 "end\n"
                                 "complete -c quern -f\n";

/* Each word of a command's name, offered after the words before it; once for commands with a common
 * prefix. */
static void fish_name(int index) {
    const char *name = all_commands[index]->name;
    for (const char *word = name; *word;) {
        const int length = (int)strcspn(word, " "),
                  before = word > name ? (int)(word - name) - 1 : 0;
        const int last = word[length] == '\0', known = (int)(word - name) + length;
        if (last || index == 0 ||
            strncmp(all_commands[index - 1]->name, name, (size_t)known) != 0) {
            printf("complete -c quern -n '__quern_after \"%.*s\"' -a %.*s", before, name, length,
                   word);
            fputs(last ? " -d '" : "\n", stdout);
            if (last) {
                put(all_commands[index]->summary, "'\\", "\\");
                puts("'");
            }
        }
        word += length + !last;
    }
}

static void complete_fish(void) {
    option_row row;
    fputs(fish_begin, stdout);
    fish_handing();
    fputs(fish_after, stdout);
    for (int i = 0; all_commands[i]; i++)
        fish_name(i);
    for (int i = 0; all_commands[i]; i++) {
        const command *c = all_commands[i];
        for (int k = 0; options_row(c->options, k, &row); k++)
            fish_option(c, row.option);
        printf("complete -c quern -n '__quern_in \"%s\"' -l help -s h -d 'print the help'\n",
               c->name);
        if (takes_files(c))
            printf("complete -c quern -n '__quern_in \"%s\"' -F\n", c->name);
    }
    for (int i = 0; i < HANDING; i++)
        printf("complete -c quern -n '__quern_in \"%s\"' -a '%s'\n", handing[i].name,
               handing[i].words);
    fputs("complete -c quern -n '__quern_in \"help\"' -a '", stdout);
    put_commands(" ", "");
    puts("'");
}

void manual_completion(const char *shell) {
    if (strcmp(shell, "zsh") == 0)
        puts("#compdef quern");
    printf("# Completion of quern for %s. Made by `quern help --completion %s`.\n", shell, shell);
    if (strcmp(shell, "bash") == 0)
        complete_bash();
    else if (strcmp(shell, "zsh") == 0)
        complete_zsh();
    else
        complete_fish();
}

/* A program that profiles itself, as an engine in C would. Its one argument is where the profile goes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "trace_attr_live.h"

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);            \
            const char *error = trace_attr_live_last_error();                  \
            fprintf(stderr, "last error: %s\n", error ? error : "none");       \
            return 1;                                                          \
        }                                                                      \
    } while (0)

static void *encode(void *handle) {
    trace_attr_live_attach(handle);
    trace_attr_live_scope_push("on another thread", NULL, 0);
    trace_attr_live_scope_pop();
    trace_attr_live_detach();
    return NULL;
}

static void *end_elsewhere(void *profile) {
    return trace_attr_live_profile_end(profile, NULL) == TRACE_ATTR_LIVE_USAGE ? profile : NULL;
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    CHECK(trace_attr_live_abi() == TRACE_ATTR_LIVE_ABI);
    printf("%s\n", trace_attr_live_version());
    CHECK(trace_attr_live_last_error() == NULL);

    /* Without a profile, scopes are nothing, and still pair. */
    CHECK(trace_attr_live_scope_push("nowhere", NULL, 0) == TRACE_ATTR_LIVE_OK);
    CHECK(trace_attr_live_scope_pop() == TRACE_ATTR_LIVE_OK);
    CHECK(trace_attr_live_scope_pop() == TRACE_ATTR_LIVE_USAGE);
    CHECK(strcmp(trace_attr_live_last_error(), "no scope is open on this thread") == 0);

    trace_attr_live_profile *profile = trace_attr_live_profile_begin();
    CHECK(profile != NULL);
    trace_attr_live_metric metrics[] = {{"flops", 2e9}, {"tokens", 64}};
    CHECK(trace_attr_live_scope_push("layer 3", metrics, 2) == TRACE_ATTR_LIVE_OK);
    CHECK(trace_attr_live_scope_push("attention/\xc3\xa9", NULL, 0) == TRACE_ATTR_LIVE_OK);

    trace_attr_live_handle *handle = trace_attr_live_handle_new(profile);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, encode, handle) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    trace_attr_live_handle_free(handle);
    trace_attr_live_handle_free(NULL);

    CHECK(trace_attr_live_scope_pop() == TRACE_ATTR_LIVE_OK);
    /* Names that are no text are refused; the scope is there all the same, so that pops stay in order. */
    CHECK(trace_attr_live_scope_push("\xff", NULL, 0) == TRACE_ATTR_LIVE_USAGE);
    CHECK(strcmp(trace_attr_live_last_error(), "the name of the scope is not UTF-8") == 0);
    CHECK(trace_attr_live_scope_pop() == TRACE_ATTR_LIVE_OK);
    CHECK(trace_attr_live_scope_push("counted", NULL, 1) == TRACE_ATTR_LIVE_USAGE);
    CHECK(trace_attr_live_scope_pop() == TRACE_ATTR_LIVE_OK);
    CHECK(trace_attr_live_scope_pop() == TRACE_ATTR_LIVE_OK);

#ifndef __APPLE__
    int no_command_buffer;
    CHECK(trace_attr_live_observe(&no_command_buffer, "x") == TRACE_ATTR_LIVE_FAILED);
    CHECK(trace_attr_live_commit(&no_command_buffer, "x") == TRACE_ATTR_LIVE_FAILED);
    CHECK(strcmp(trace_attr_live_last_error(), "command buffers are Metal's, which only macOS has") == 0);
#endif
    CHECK(trace_attr_live_observe(NULL, NULL) == TRACE_ATTR_LIVE_USAGE);

    void *refused;
    CHECK(pthread_create(&thread, NULL, end_elsewhere, profile) == 0);
    CHECK(pthread_join(thread, &refused) == 0);
    CHECK(refused == profile);
    CHECK(trace_attr_live_profile_end(NULL, NULL) == TRACE_ATTR_LIVE_USAGE);
    CHECK(trace_attr_live_profile_end(profile, arguments[1]) == TRACE_ATTR_LIVE_OK);

    CHECK(trace_attr_live_profile_end(trace_attr_live_profile_begin(), NULL) == TRACE_ATTR_LIVE_OK);
    CHECK(trace_attr_live_profile_end(trace_attr_live_profile_begin(), "/nowhere/run.json") == TRACE_ATTR_LIVE_FAILED);
    return 0;
}

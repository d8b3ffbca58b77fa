/* Profiles of Metal work from inside a program in C, C++, Objective-C or Swift.
 *
 *     trace_attr_live_profile *profile = trace_attr_live_profile_begin();
 *     trace_attr_live_scope_push("layer 3", NULL, 0);
 *     trace_attr_live_commit((__bridge void *)commandBuffer, "attention");    // instead of [commandBuffer commit]
 *     trace_attr_live_scope_pop();
 *     if (trace_attr_live_profile_end(profile, "run.json") != TRACE_ATTR_LIVE_OK)
 *         fprintf(stderr, "%s\n", trace_attr_live_last_error());
 *
 * The file is read by `trace-attr report` and `trace-attr compare`. Build the library from the project's folder:
 *
 *     cargo rustc --release --lib --no-default-features --features live --crate-type staticlib
 *
 * and link target/release/libtrace_attr.a, on macOS with -framework Metal -framework Foundation -framework CoreGraphics
 * -framework CoreFoundation -lobjc; or --crate-type cdylib for target/release/libtrace_attr.dylib.
 *
 * Profiles and scopes belong to the thread that opened them; other threads join a profile with a handle. Without a profile
 * on the calling thread, scopes and command buffers cost one look at a flag. Strings are UTF-8, ended by a zero byte, and
 * are copied. Command buffers are not kept. No function waits for the GPU but trace_attr_live_profile_end, for at most five
 * seconds.
 */
#ifndef TRACE_ATTR_LIVE_H
#define TRACE_ATTR_LIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up when a function of this file changes its meaning. */
#define TRACE_ATTR_LIVE_ABI 1

/* The library's ABI; compare it with TRACE_ATTR_LIVE_ABI. */
uint32_t trace_attr_live_abi(void);
/* The library's version, as "0.1.0". Never null, never freed. */
const char *trace_attr_live_version(void);

typedef enum trace_attr_live_status {
    TRACE_ATTR_LIVE_OK = 0,
    /* A null pointer, a string that is not UTF-8, a call on the wrong thread, a command buffer that was committed already. */
    TRACE_ATTR_LIVE_USAGE = 1,
    /* The system or Metal refused; trace_attr_live_last_error says what. */
    TRACE_ATTR_LIVE_FAILED = 2
} trace_attr_live_status;

/* What went wrong in the last call on this thread that gave another status than OK, or null. Valid until the next such call. */
const char *trace_attr_live_last_error(void);

typedef struct trace_attr_live_profile trace_attr_live_profile;

/* Opens a profile on this thread. Profiles nest. Never null. */
trace_attr_live_profile *trace_attr_live_profile_begin(void);
/* Closes a profile on the thread that opened it and writes it to a file, as JSON; `path` may be null to throw it away. The
 * pointer is gone afterwards, unless the status is USAGE. */
trace_attr_live_status trace_attr_live_profile_end(trace_attr_live_profile *profile, const char *path);

typedef struct trace_attr_live_handle trace_attr_live_handle;

/* On the thread that opened the profile: what other threads do while they are attached stands below the scope that is open here
 * now. Null when the profile is null or another thread's. */
trace_attr_live_handle *trace_attr_live_handle_new(const trace_attr_live_profile *profile);
/* Makes them active on the calling thread, until trace_attr_live_detach there. */
trace_attr_live_status trace_attr_live_attach(const trace_attr_live_handle *handle);
/* Ends the last trace_attr_live_attach of this thread. */
trace_attr_live_status trace_attr_live_detach(void);
/* Frees a handle; threads that are attached stay attached. Null is fine. */
void trace_attr_live_handle_free(trace_attr_live_handle *handle);

/* An amount of work: "flops" and "bytes" give throughput, every other name is kept as it is. */
typedef struct trace_attr_live_metric {
    const char *name;
    double value;
} trace_attr_live_metric;

/* Opens a scope on this thread; every push needs its pop. `metrics` may be null when `count` is 0. When the status is not OK,
 * a scope was opened all the same, without what was refused, so that pops stay in order. */
trace_attr_live_status trace_attr_live_scope_push(const char *name, const trace_attr_live_metric *metrics, size_t count);
/* Closes the innermost scope of this thread. */
trace_attr_live_status trace_attr_live_scope_pop(void);

/* Watches an id<MTLCommandBuffer> that the program commits later: GPU start and end, status. Nothing is done to it but two
 * handlers. FAILED on other systems than macOS. */
trace_attr_live_status trace_attr_live_observe(void *command_buffer, const char *label);
/* Commits an id<MTLCommandBuffer> and watches it; gives the time from the commit to the GPU's start as well. When the status
 * is not OK, it was not committed. */
trace_attr_live_status trace_attr_live_commit(void *command_buffer, const char *label);

#ifdef __cplusplus
}
#endif

#endif

// Versions of a vectorised function for what the processor supports, chosen when the program starts.
#pragma once

/// TSDP_CLONES before a function compiles it for three feature levels. Levels, not processors: the name of a processor
/// matches exactly that one kind. Compilers without it, and sanitizers, get only the plain version, and no
/// TSDP_HAS_CLONES.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TSDP_HAS_CLONES
#define TSDP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TSDP_CLONES
#endif

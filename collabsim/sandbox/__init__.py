"""The sandbox: runs code that models wrote, and nothing that it does can pass, escape or slow what comes after it.

In: a program, and tests or input. Out: a `Report`. `pool.Sandbox` is the door; the modules below it:

    pool, worker            in the user's process: a few warm workers, one request at a time each
    server                  a worker: a process without the user's data that forks a pair of processes for each program
    candidate, examiner     the pair: the program, and the tests; they exchange values (`wire`, `peer`), never objects
    confinement             what both are put under: `landlock`, `seccomp` (`syscalls`), `limits`, `namespaces`, another user
    floor                   what this machine offers, and what to do when it is too little

What is guaranteed wherever code is run at all (the floor):

- A program never shares a process with its tests, so it cannot patch, read or forge them: all it can do is answer calls with
  plain data. Success is a nonce that the tests' process sends after the last assertion; the program's never held it.
- It makes no process, runs no other program, opens no socket, signals and traces nobody, reads the standard library and
  numpy only, and writes in one folder that is removed. It ends with its worker, and a worker with the user's process.
- Limits on processor time, time by the clock, memory, size of files and folder, output, threads and descriptors.

In addition, where the system allows: a user of its own (root only), namespaces for processes, network and mounts, and a work
folder in memory whose size the kernel holds; on the floor that size is looked at ten times a second. Not guaranteed: that
tests which compare objects of the program's own classes with each other (never with plain values) mean anything, that time
cannot be measured, or that a hole in the kernel's own system calls stays closed.

Left out on purpose: other languages than Python, and other systems than Linux.
"""

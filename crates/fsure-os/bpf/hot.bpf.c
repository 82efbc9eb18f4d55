// Counts what is read, written and made durable, by folder and by program, and reports
// single calls: runs inside of the Linux kernel, for `fsure hot` and `fsure flush trace`.
//
// Raw tracepoints with BTF only: they are the same function calls on every
// architecture, and some kernels refuse all other ways of tracing. Of the
// kernel's structures only the members that are used are declared; where they
// lie is settled when the program is loaded (CO-RE), so the object that is
// committed runs on kernels that it was not built for.
//
// A fault of ours must not cost the system anything: nothing here writes to
// memory that is not ours, and every map is bounded; what finds no room is
// counted in `lost`.
//
// Built by `./build`, which says with what.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
// Once in the object, however often it is called.
#define ONCE static __attribute__((noinline))
#define KERNEL __attribute__((preserve_access_index))

// ---- the kernel, as far as it is used ----

struct super_block { u32 s_dev; unsigned long s_magic; } KERNEL;
struct hlist_node { struct hlist_node *next; } KERNEL;
struct hlist_head { struct hlist_node *first; } KERNEL;
struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	struct hlist_head i_dentry;
	u32 i_generation;
} KERNEL;
struct qstr { const unsigned char *name; } KERNEL;
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union { struct hlist_node d_alias; } d_u;
} KERNEL;
struct path { struct dentry *dentry; } KERNEL;
struct file { struct inode *f_inode; u32 f_flags; struct path f_path; } KERNEL;
struct fdtable { u32 max_fds; struct file **fd; } KERNEL;
struct files_struct { struct fdtable *fdt; } KERNEL;
struct signal_struct { struct { s32 counter; } live; } KERNEL;
struct task_struct {
	u32 flags;
	s32 tgid;
	struct files_struct *files;
	struct signal_struct *signal;
	struct task_struct *group_leader;
	char comm[16];
} KERNEL;
struct address_space { struct inode *host; } KERNEL;
struct folio { struct address_space *mapping; u32 _nr_pages; } KERNEL;
enum pageflags { PG_head = 6 };
struct io_uring_cqe { s32 res; } KERNEL;
struct io_kiocb { struct file *file; u8 opcode; } KERNEL;

// Names that some kernels have and others do not: whatever stands behind three
// underscores is no part of a name.
struct folio___5_18 { u32 _folio_nr_pages; } KERNEL;
struct dentry___flat { struct hlist_node d_alias; } KERNEL;
struct pt_regs___x86 { unsigned long di, si, dx, r9; } KERNEL;
struct pt_regs___arm64 { unsigned long regs[31]; } KERNEL;
struct thread_info___x86 { u32 status; } KERNEL;
struct thread_info___arm64 { unsigned long flags; } KERNEL;
struct task_struct___x86 { struct thread_info___x86 thread_info; } KERNEL;
struct task_struct___arm64 { struct thread_info___arm64 thread_info; } KERNEL;

#define EXISTS(member) __builtin_preserve_field_info(member, 2)
#define OFFSET(member) __builtin_preserve_field_info(member, 0)

static void *(*map_get)(void *, const void *) = (void *)1;
static long (*map_put)(void *, const void *, const void *, u64) = (void *)2;
static long (*map_remove)(void *, const void *) = (void *)3;
static u64 (*now)(void) = (void *)5;
static u64 (*thread_and_process)(void) = (void *)14;
static u64 (*current_task)(void) = (void *)35;
static long (*read_user)(void *, u32, const void *) = (void *)112;
static long (*read_kernel)(void *, u32, const void *) = (void *)113;
static long (*read_kernel_text)(void *, u32, const void *) = (void *)115;
static long (*ring_put)(void *, void *, u64, u64) = (void *)130;
static void *(*ring_reserve)(void *, u64, u64) = (void *)131;
static void (*ring_submit)(void *, u64) = (void *)132;

#define READ(to, from) read_kernel(&(to), sizeof(to), &(from))
#define ADD(to, amount) __sync_fetch_and_add(&(to), (amount))

// ---- what is told, the same in hot.rs ----

// A folder. Numbers alone would not do: of a btrfs they are the same in each
// of its subvolumes.
struct folder { u64 inode; u64 ino; u64 dev; };

struct counts {
	u64 reads, bytes_read, read_ns;
	u64 writes, bytes_written, write_ns;
	u64 fsyncs, fsync_ns;
	u64 synced_write_ns;
	u64 bytes_missed, missed_ns;
	u64 bytes_mapped;
	u32 last_process, is_named;
};

#define NAMES 4096
#define NAME 256
#define DEPTH 256

// A folder's names up to the root of its file system, the last one first, each
// with a zero behind it. Only as much is told as there is.
struct name { struct folder folder; u32 length; u32 is_whole; u8 names[NAMES]; };
#define NAME_HEAD 32

struct process { struct folder folder; u64 tgid; };
struct program { u8 name[16]; };

// A call that made something durable, or tried to. The folder is the file; all
// zeroes where there is none.
struct flush {
	struct folder file;
	u64 began, ns;
	u32 tgid, call, flags, failed;
};
// In place of the number of a call: a request of io_uring or of libaio, and its operation.
#define IO_URING_REQUEST 0x10000
#define LIBAIO_REQUEST 0x20000
// In place of the number of a call: a page of a mapping.
#define MAPPED_READ 0x30000
#define MAPPED_WRITE 0x30001

// A call that ended, with the name of its file in the folder; the name is empty where
// the call was on the folder.
struct logged_call {
	struct folder folder;
	u64 began, ns;
	s64 result; // bytes, or the number of an error below 0
	u32 tgid, number, operation, flags;
	struct program program;
	u32 length, unused;
	u8 name[NAME];
};
// The operations of `logged_operations`.
#define LOG_READ 1
#define LOG_WRITE 2
#define LOG_FLUSH 4
#define LOG_MAPPED 8
// The flags of a logged call: it waited for the device; its time is not known.
#define LOGGED_WAITED 1
#define LOGGED_UNTIMED 2

enum lost {
	LOST_FOLDERS, LOST_CALLS, LOST_PROCESSES, LOST_32_BIT, LOST_WATCHED, LOST_FLUSHES,
	LOST_AIO_FLUSHES, LOST_LOGGED, LOST_PROGRAMS, LOST_KINDS
};

// ---- what is told to us, before this is loaded ----

volatile const u32 own_process = 0;
volatile const u32 page_size = 4096;
volatile const u32 o_direct = 040000;
volatile const u32 o_dsync = 010000;
// What O_SYNC has beside O_DSYNC.
volatile const u32 o_sync = 04000000;
// A process that makes the call `mark_call` with this is watched from then on, and
// all that it starts. All processes are where it is 0.
volatile const u64 mark = 0;
volatile const u32 mark_call = 0;
// Whether each flush is reported and nothing is counted. Then files stand for themselves
// and not for their folder.
volatile const u32 is_flush_trace = 0;
// The operations of which each call is reported.
volatile const u32 logged_operations = 0;
// Whether what a program does is counted by its name, too.
volatile const u32 counts_programs = 0;
// The flags of an open that makes or truncates a file: O_CREAT, O_TRUNC, O_TMPFILE.
volatile const u64 o_changes = 0;

#define CALLS 512
volatile const u8 operations[CALLS] = {};

enum operation {
	NONE, READS, WRITES, SYNCS, SENDFILE, COPIES, RING, AIO, CHANGES,
	WRITES_FLAGGED, FLUSHES, MSYNCS, METADATA, OPENS, OPENS_AT, OPENS_HOW,
};

// ---- what is under way ----

// A file that is in use: its folder, and what its name is found by.
struct target { struct folder folder; u64 inode, dentry; };

struct call {
	struct target from, to;
	u64 began;
	u64 pointers; // of io_submit; of io_uring, the request that it is at
	u32 operation;
	u32 flags;
	u32 ring_operation;
	u32 missed;
	u32 number;
};
#define DIRECT 1
#define DURABLE 2
// Of what is durable: its other attributes too, and by this call alone.
#define SYNCED 4
#define BY_CALL 8
// A write, for the moment in which its file is looked up.
#define WRITING 16

struct request { u64 began; u32 tgid; u32 missed; struct program program; };

#define MAP(map, kind, entries, key_type, value_type)                         \
	struct {                                                              \
		int (*type)[kind];                                            \
		int (*max_entries)[entries];                                  \
		key_type *key;                                                \
		value_type *value;                                            \
	} map SEC(".maps")

MAP(folders, 1, 32768, struct folder, struct counts);
MAP(processes, 1, 65536, struct process, struct program);
MAP(programs, 1, 8192, struct program, struct counts);
MAP(calls, 1, 16384, u64, struct call);
MAP(requests, 1, 16384, u64, struct request);
MAP(lost, 2, LOST_KINDS, u32, u64);
// The processes that are watched and alive, if not all are watched.
MAP(watched, 1, 32768, u32, u32);
// How often the mark was seen.
MAP(marked, 2, 1, u32, u64);
// The calls that made, truncated, renamed or removed files, and their time. They are counted of
// no folder: most of them name a path, which is not looked up where this could see it.
struct metadata { u64 calls, ns; };
MAP(metadata, 2, 1, u32, struct metadata);
// Where a name is put together: one for each processor, which does nothing else
// meanwhile.
MAP(making, 6, 1, u32, struct name);
struct {
	int (*type)[27];
	int (*max_entries)[1 << 22];
} names SEC(".maps");
struct {
	int (*type)[27];
	int (*max_entries)[1 << 22];
} flushes SEC(".maps");
// Large only where calls are logged.
struct {
	int (*type)[27];
	int (*max_entries)[1 << 12];
} logged_calls SEC(".maps");

INLINE void lose(u32 what)
{
	u64 *count = map_get(&lost, &what);
	if (count)
		ADD(*count, 1);
}

INLINE void count_metadata(u64 ns)
{
	u32 only = 0;
	struct metadata *all = map_get(&metadata, &only);
	if (all) {
		ADD(all->calls, 1);
		ADD(all->ns, ns);
	}
}

INLINE int is_watched(u32 tgid)
{
	if (tgid == own_process)
		return 0;
	return !mark || map_get(&watched, &tgid);
}

// File systems that are no storage: what is read there was never on a disk.
INLINE int is_pseudo(u64 magic)
{
	switch (magic) {
	case 0x9fa0: // proc
	case 0x62656572: // sysfs
	case 0x27e0eb: // cgroup
	case 0x63677270: // cgroup2
	case 0x64626720: // debugfs
	case 0x74726163: // tracefs
	case 0x73636673: // securityfs
	case 0xcafe4a11: // bpf
	case 0x62656570: // configfs
	case 0x19800202: // mqueue
	case 0x6e736673: // namespaces
	case 0xf97cff8c: // selinux
	case 0x50494446: // pidfd
		return 1;
	}
	return 0;
}

// The folder that a dentry is, as a key, or the file. False where it is none of storage.
INLINE int key_of(struct dentry *dentry, struct folder *key)
{
	struct inode *inode = 0;
	struct super_block *super = 0;
	unsigned long ino = 0, magic = 0;
	u32 dev = 0, generation = 0;
	u16 mode = 0;

	READ(inode, dentry->d_inode);
	if (!inode)
		return 0;
	READ(mode, inode->i_mode);
	READ(super, inode->i_sb);
	if (((mode & 0170000) != 0040000 && !is_flush_trace) || !super)
		return 0;
	READ(magic, super->s_magic);
	// A key without a name would stand for a file that is deleted.
	if (is_pseudo(magic))
		return 0;
	READ(ino, inode->i_ino);
	READ(dev, super->s_dev);
	READ(generation, inode->i_generation);
	// The next file can have all else of one that is gone.
	key->inode = (u64)inode ^ (u64)generation << 32;
	key->ino = ino;
	key->dev = dev;
	return 1;
}

// Says the names of the folder that a dentry is, and whether there was room for them.
// Of plain numbers, and not of this file alone, so that the kernel goes through its
// many steps once when it is loaded and not once for each caller.
__attribute__((noinline)) u32 tell_name(u64 at, u64 inode, u64 ino, u64 dev)
{
	struct dentry *dentry = (void *)at;
	u32 only = 0, used = 0;
	struct name *name = map_get(&making, &only);

	if (!name)
		return 0;
	name->folder.inode = inode;
	name->folder.ino = ino;
	name->folder.dev = dev;
	name->is_whole = 0;
	for (int depth = 0; depth < DEPTH; depth++) {
		struct dentry *parent = 0;
		const unsigned char *text = 0;
		READ(parent, dentry->d_parent);
		if (parent == dentry || !parent) {
			name->is_whole = 1;
			break;
		}
		READ(text, dentry->d_name.name);
		if (used > NAMES - NAME)
			break;
		long length = read_kernel_text(name->names + used, NAME, text);
		if (length <= 1 || length > NAME)
			break;
		used += length;
		dentry = parent;
	}
	if (used > NAMES)
		return 0;
	name->length = used;
	return !ring_put(&names, name, NAME_HEAD + used, 0);
}

// What is counted of a folder, which is named at first sight.
INLINE struct counts *counts_of(struct dentry *dentry, struct folder *key)
{
	struct counts *counts = map_get(&folders, key);
	if (!counts) {
		struct counts none = {};
		map_put(&folders, key, &none, 1);
		counts = map_get(&folders, key);
		if (!counts) {
			lose(LOST_FOLDERS);
			return 0;
		}
	}
	// Where there is no room, the next that happens in this folder tries again.
	if (!counts->is_named)
		counts->is_named = tell_name((u64)dentry, key->inode, key->ino, key->dev);
	return counts;
}

// The name of the program, and not of one of its threads.
INLINE void program_of_task(struct program *program)
{
	struct task_struct *task = (void *)current_task(), *leader = 0;

	READ(leader, task->group_leader);
	READ(program->name, leader->comm);
}

ONCE void count_process(struct counts *counts, struct folder *key, u32 tgid)
{
	struct process process = { .folder = *key, .tgid = tgid };
	struct program program = {};

	if (counts->last_process == tgid)
		return;
	counts->last_process = tgid;
	if (map_get(&processes, &process))
		return;
	program_of_task(&program);
	if (map_put(&processes, &process, &program, 0))
		lose(LOST_PROCESSES);
}

// The folder of an open file, named and with this process in it. False where
// the file is neither a plain file nor a folder.
ONCE int target_of(struct file *file, struct target *target, u32 *flags, u32 tgid)
{
	struct inode *inode = 0;
	struct dentry *dentry = 0;
	u32 open_flags = 0;
	u16 mode = 0;

	READ(inode, file->f_inode);
	if (!inode)
		return 0;
	READ(mode, inode->i_mode);
	READ(dentry, file->f_path.dentry);
	READ(open_flags, file->f_flags);
	target->dentry = 0;
	if ((mode & 0170000) == 0100000) {
		target->dentry = (u64)dentry;
		if (!is_flush_trace)
			READ(dentry, dentry->d_parent);
	} else if ((mode & 0170000) != 0040000 && !is_flush_trace) {
		return 0;
	}
	if (open_flags & o_dsync)
		*flags |= DURABLE;
	if ((open_flags & o_dsync) && (open_flags & o_sync))
		*flags |= SYNCED;
	// Most writes are no flush, and no reason to name a file.
	if (is_flush_trace && (*flags & WRITING) && !(*flags & DURABLE))
		return 0;
	if (!key_of(dentry, &target->folder))
		return 0;
	struct counts *counts = counts_of(dentry, &target->folder);
	if (!counts)
		return 0;
	if (!is_flush_trace)
		count_process(counts, &target->folder, tgid);
	target->inode = (u64)inode;
	if (open_flags & o_direct)
		*flags |= DIRECT;
	return 1;
}

INLINE struct file *file_of(u32 fd)
{
	struct task_struct *task = (void *)current_task();
	struct files_struct *files = 0;
	struct fdtable *table = 0;
	struct file **all = 0, *file = 0;
	u32 count = 0;

	READ(files, task->files);
	if (!files)
		return 0;
	READ(table, files->fdt);
	READ(count, table->max_fds);
	READ(all, table->fd);
	if (fd < count)
		READ(file, all[fd]);
	return file;
}

// ---- counting what ended ----

// What is counted of the program, of which there is one if programs are counted.
INLINE struct counts *counts_of_program(struct program *program)
{
	struct counts *counts;

	if (!counts_programs)
		return 0;
	counts = map_get(&programs, program);
	if (!counts) {
		struct counts none = {};
		map_put(&programs, program, &none, 1);
		counts = map_get(&programs, program);
		if (!counts)
			lose(LOST_PROGRAMS);
	}
	return counts;
}

// What a call did that ended and did not fail.
struct done { u64 bytes, ns; u32 operation, flags, missed; };

ONCE void add_done(struct counts *counts, struct done *done)
{
	u64 ns = done->ns;

	switch (done->operation) {
	case READS:
		ADD(counts->reads, 1);
		ADD(counts->bytes_read, done->bytes);
		ADD(counts->read_ns, ns);
		// A direct read passes the cache by.
		if (done->flags & DIRECT)
			ADD(counts->bytes_missed, done->bytes);
		if (done->missed || done->flags & DIRECT)
			ADD(counts->missed_ns, ns);
		break;
	case WRITES:
		ADD(counts->writes, 1);
		ADD(counts->bytes_written, done->bytes);
		ADD(counts->write_ns, ns);
		if (done->flags & (DIRECT | DURABLE))
			ADD(counts->synced_write_ns, ns);
		break;
	case SYNCS:
		ADD(counts->fsyncs, 1);
		ADD(counts->fsync_ns, ns);
		break;
	}
}

ONCE void count(struct folder *key, struct program *program, struct done *done)
{
	struct counts *counts = map_get(&folders, key);

	if (counts)
		add_done(counts, done);
	counts = counts_of_program(program);
	if (counts)
		add_done(counts, done);
}

INLINE void tell_flush(struct folder *file, u32 tgid, u32 number, u32 flags, u64 began, s64 result)
{
	struct flush flush = { .began = began, .tgid = tgid, .call = number };

	if (!is_flush_trace)
		return;
	flush.file = *file;
	flush.ns = now() - began;
	flush.flags = flags & (DURABLE | SYNCED | BY_CALL);
	flush.failed = result < 0;
	if (ring_put(&flushes, &flush, sizeof(flush), 0))
		lose(LOST_FLUSHES);
}

// ---- logging single calls ----

// The time, the process and the result of a call that is logged.
struct ended { u64 began, ns; s64 result; u32 tgid, number, operation, flags; };

// Reports a call. A dentry of which the inode is another one by now belongs to a file that
// was closed meanwhile: such a call has the name of its folder only.
ONCE void log_call(struct ended *ended, struct target *target, struct program *program)
{
	struct logged_call *logged = ring_reserve(&logged_calls, sizeof(*logged), 0);
	struct dentry *dentry = (void *)target->dentry;
	const unsigned char *text = 0;
	struct inode *inode = 0;
	long length = 0;

	if (!logged) {
		lose(LOST_LOGGED);
		return;
	}
	logged->folder = target->folder;
	logged->began = ended->began;
	logged->ns = ended->ns;
	logged->result = ended->result;
	logged->tgid = ended->tgid;
	logged->number = ended->number;
	logged->operation = ended->operation;
	logged->flags = ended->flags;
	logged->program = *program;
	logged->unused = 0;
	if (dentry) {
		READ(inode, dentry->d_inode);
		READ(text, dentry->d_name.name);
		if ((u64)inode == target->inode)
			length = read_kernel_text(logged->name, NAME, text);
	}
	logged->length = length > 0 ? length - 1 : 0;
	ring_submit(logged, 0);
}

INLINE void log_ended(struct ended *ended, struct target *target, struct program *program)
{
	if (logged_operations & ended->operation)
		log_call(ended, target, program);
}

// ---- the processes of a command ----

INLINE void watch_process(u32 tgid)
{
	u32 is = 1;

	if (map_put(&watched, &tgid, &is, 0))
		lose(LOST_WATCHED);
}

SEC("tp_btf/sched_process_fork")
int hot_fork(u64 *context)
{
	struct task_struct *child = (void *)context[1];
	u32 parent = thread_and_process() >> 32;
	s32 tgid = 0;

	if (!child || !mark || !map_get(&watched, &parent))
		return 0;
	READ(tgid, child->tgid);
	// Not a thread.
	if ((u32)tgid != parent)
		watch_process(tgid);
	return 0;
}

// A thread ends, and its process with the last of them.
SEC("tp_btf/sched_process_exit")
int hot_process_exit(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	struct signal_struct *signal = 0;
	s32 tgid = 0, live = 1;
	u32 key;

	if (!task || !mark)
		return 0;
	READ(tgid, task->tgid);
	READ(signal, task->signal);
	READ(live, signal->live.counter);
	key = tgid;
	if (live <= 0)
		map_remove(&watched, &key);
	return 0;
}

// ---- system calls ----

// Programs of 32 bits have other numbers for their calls.
INLINE int is_32_bit(void)
{
	struct task_struct *task = (void *)current_task();
	struct task_struct___x86 *x86 = (void *)task;
	struct task_struct___arm64 *arm64 = (void *)task;

	if (EXISTS(x86->thread_info.status)) {
		u32 status = 0;
		READ(status, x86->thread_info.status);
		return status & 2;
	}
	if (EXISTS(((struct pt_regs___arm64 *)0)->regs)) {
		unsigned long flags = 0;
		READ(flags, arm64->thread_info.flags);
		return (flags >> 22) & 1;
	}
	return 0;
}

struct arguments { u64 first, second, third, sixth; };

INLINE void read_arguments(void *registers, struct arguments *to)
{
	struct pt_regs___x86 *x86 = registers;
	struct pt_regs___arm64 *arm64 = registers;

	if (EXISTS(x86->di)) {
		READ(to->first, x86->di);
		READ(to->second, x86->si);
		READ(to->third, x86->dx);
		READ(to->sixth, x86->r9);
	} else if (EXISTS(arm64->regs)) {
		u64 all[6] = {};
		read_kernel(all, sizeof(all), &arm64->regs);
		to->first = all[0];
		to->second = all[1];
		to->third = all[2];
		to->sixth = all[5];
	}
}

// Whether an open makes or truncates a file.
INLINE int opens_to_change(u32 operation, struct arguments *is)
{
	u64 flags = operation == OPENS ? is->second : is->third;

	if (operation == OPENS_HOW && read_user(&flags, sizeof(flags), (void *)is->third))
		return 0;
	return (flags & o_changes) != 0;
}

SEC("tp_btf/sys_enter")
int hot_enter(u64 *context)
{
	void *registers = (void *)context[0];
	u64 number = context[1];
	u64 thread = thread_and_process();
	u32 tgid = thread >> 32;
	struct arguments is = {};
	struct call call = {};
	struct file *file;
	int known = 1;

	if (!registers || number >= CALLS)
		return 0;
	if (mark && number == mark_call) {
		read_arguments(registers, &is);
		if (is.first == mark) {
			u32 only = 0;
			u64 *count = map_get(&marked, &only);
			if (count)
				ADD(*count, 1);
			watch_process(tgid);
		}
	}
	if (!is_watched(tgid))
		return 0;
	// Before their numbers are looked at, which are of other calls.
	if (is_32_bit()) {
		lose(LOST_32_BIT);
		return 0;
	}
	call.number = number;
	call.operation = operations[number & (CALLS - 1)];
	if (call.operation == NONE)
		return 0;
	read_arguments(registers, &is);
	if (call.operation == WRITES_FLAGGED) {
		// RWF_DSYNC, RWF_SYNC
		if (is.sixth & 6)
			call.flags = DURABLE | BY_CALL | (is.sixth & 4 ? SYNCED : 0);
		call.operation = WRITES;
	}
	if (call.operation == WRITES)
		call.flags |= WRITING;
	if (call.operation >= OPENS) {
		if (!opens_to_change(call.operation, &is))
			return 0;
		call.operation = METADATA;
	}
	if (call.operation == MSYNCS) {
		// MS_SYNC: without it, nothing is waited for.
		if (!(is.third & 4))
			return 0;
		call.operation = FLUSHES;
	}
	if (call.operation == AIO)
		call.pointers = is.third;
	if (call.operation <= COPIES) {
		u32 from = call.operation == SENDFILE ? is.second : is.first;
		u32 to = call.operation == SENDFILE ? is.first : is.third;
		file = file_of(from);
		known = file && target_of(file, &call.from, &call.flags, tgid);
		if (call.operation >= SENDFILE) {
			file = file_of(to);
			// Who reads and who writes: they have flags of their own.
			u32 flags = WRITING;
			call.flags &= DIRECT;
			if (file && target_of(file, &call.to, &flags, tgid))
				known = 1;
			call.flags |= flags & (DURABLE | SYNCED);
		}
	}
	// A flush of what is no file fails, and is told.
	if (!known && !(is_flush_trace && call.operation == SYNCS))
		return 0;
	call.began = now();
	if (map_put(&calls, &thread, &call, 0))
		lose(LOST_CALLS);
	return 0;
}

// The kernel's `struct iocb`, which programs fill.
struct iocb { u64 data; u32 key, flags; u16 operation; u16 priority; u32 fd; u64 buffer, bytes; };
#define AIO_MOST 64

// Counts a request of libaio that was taken. PREAD 0, PWRITE 1, FSYNC 2, FDSYNC 3,
// PREADV 7, PWRITEV 8; of a vector it says the number of its parts.
ONCE void count_aio_request(struct iocb *iocb, struct program *program, u64 began, u32 tgid)
{
	struct ended ended = { .began = began, .tgid = tgid, .flags = LOGGED_UNTIMED };
	struct target target = {};
	struct done done = {};
	u32 flags = 0, operation = iocb->operation;
	struct file *file = file_of(iocb->fd);

	if (!file || !target_of(file, &target, &flags, tgid))
		return;
	ended.number = LIBAIO_REQUEST | operation;
	if (operation == 0 || operation == 7) {
		ended.operation = LOG_READ;
		done.operation = READS;
	} else if (operation == 1 || operation == 8) {
		ended.operation = LOG_WRITE;
		done.operation = WRITES;
	} else if (operation == 2 || operation == 3) {
		ended.operation = LOG_FLUSH;
		done.operation = SYNCS;
		// That it was taken is all that is known of it.
		if (is_flush_trace)
			lose(LOST_AIO_FLUSHES);
	} else {
		return;
	}
	if (is_flush_trace)
		return;
	if (operation < 2)
		ended.result = done.bytes = iocb->bytes;
	done.flags = flags;
	count(&target.folder, program, &done);
	log_ended(&ended, &target, program);
}

// Requests that were taken. How long they take is not seen, nor what they moved
// in the end; that is nearly always what they asked for.
ONCE void count_aio(struct call *call, struct program *program, s64 taken, u32 tgid)
{
	for (int place = 0; place < AIO_MOST; place++) {
		struct iocb iocb = {}, *at = 0;
		if (place >= taken)
			return;
		read_user(&at, sizeof(at), (void *)(call->pointers + place * 8));
		if (!read_user(&iocb, sizeof(iocb), at))
			count_aio_request(&iocb, program, call->began, tgid);
	}
	if (taken > AIO_MOST)
		lose(LOST_CALLS);
}

// Reports a call to the trace of flushes if it is one.
INLINE void trace_call(struct call *call, u32 tgid, s64 result)
{
	struct folder *file = &call->from.folder;
	u32 flags = call->flags;

	switch (call->operation) {
	case SENDFILE:
	case COPIES:
		file = &call->to.folder;
		// As a write.
	case WRITES:
		if (!(flags & DURABLE))
			return;
		break;
	case FLUSHES:
	case SYNCS:
		// Of no file, the key is empty.
		flags = 0;
		break;
	default:
		return;
	}
	tell_flush(file, tgid, call->number, flags, call->began, result);
}

#define WAITED(is) ((is) ? LOGGED_WAITED : 0)

// Reports a call to the log: a copy is a read and a write, and its time is that of the write.
ONCE void log_system_call(struct call *call, struct program *program, u64 ns, s64 result, u32 tgid)
{
	struct ended ended = {
		.began = call->began, .ns = ns, .result = result, .tgid = tgid, .number = call->number,
	};
	u32 is_durable = call->flags & (DIRECT | DURABLE);
	u32 is_missed = call->missed || call->flags & DIRECT;

	switch (call->operation) {
	case READS:
		ended.operation = LOG_READ;
		ended.flags = WAITED(is_missed);
		break;
	case WRITES:
		ended.operation = LOG_WRITE;
		ended.flags = WAITED(is_durable);
		break;
	case SYNCS:
	case FLUSHES:
		ended.operation = LOG_FLUSH;
		ended.flags = LOGGED_WAITED;
		break;
	case SENDFILE:
	case COPIES:
		if (call->to.inode) {
			ended.operation = LOG_WRITE;
			ended.flags = WAITED(call->flags & DURABLE);
			log_ended(&ended, &call->to, program);
		}
		if (!call->from.inode)
			return;
		ended.operation = LOG_READ;
		ended.flags = WAITED(is_missed) | (call->to.inode ? LOGGED_UNTIMED : 0);
		break;
	default:
		return;
	}
	log_ended(&ended, &call->from, program);
}

SEC("tp_btf/sys_exit")
int hot_exit(u64 *context)
{
	s64 result = context[1];
	u64 thread = thread_and_process();
	struct call *known = map_get(&calls, &thread);
	struct program program = {};
	struct call call;

	if (!known)
		return 0;
	call = *known;
	map_remove(&calls, &thread);
	u64 ns = now() - call.began;
	u32 tgid = thread >> 32;
	if (is_flush_trace)
		trace_call(&call, tgid, result);
	if (is_flush_trace && call.operation != AIO)
		return 0;
	if (counts_programs || logged_operations)
		program_of_task(&program);
	if (logged_operations)
		log_system_call(&call, &program, ns, result, tgid);
	if (result < 0)
		return 0;
	struct done done = { .bytes = result, .ns = ns, .operation = call.operation,
			     .flags = call.flags, .missed = call.missed };
	switch (call.operation) {
	case READS:
	case WRITES:
	case SYNCS:
		count(&call.from.folder, &program, &done);
		break;
	case SENDFILE:
	case COPIES:
		// The time is that of both; it counts once, where it is written.
		if (call.to.inode) {
			done.operation = WRITES;
			done.flags = call.flags & DURABLE;
			count(&call.to.folder, &program, &done);
			done.ns = 0;
		}
		if (call.from.inode) {
			done.operation = READS;
			done.flags = call.flags & DIRECT;
			count(&call.from.folder, &program, &done);
		}
		break;
	case AIO:
		count_aio(&call, &program, result, tgid);
		break;
	case CHANGES:
	case METADATA:
		count_metadata(ns);
		break;
	}
	return 0;
}

// ---- io_uring ----

INLINE u32 ring_operation(u8 opcode)
{
	switch (opcode) {
	case 1: case 4: case 22: case 49: case 60:
		return READS;
	case 2: case 5: case 23: case 61:
		return WRITES;
	case 3: case 8:
		return SYNCS;
	}
	return NONE;
}

SEC("tp_btf/io_uring_submit_req")
int hot_submit(u64 *context)
{
	struct io_kiocb *request = (void *)context[0];
	u64 key = (u64)request;
	u64 thread = thread_and_process();
	struct request is = { .tgid = thread >> 32 };
	u8 opcode = 0;

	if (!request || !is_watched(is.tgid))
		return 0;
	READ(opcode, request->opcode);
	struct call *call = map_get(&calls, &thread);
	// What it is doing from now on is done for this request.
	if (call) {
		call->ring_operation = ring_operation(opcode);
		call->pointers = key;
	}
	if (ring_operation(opcode) == NONE)
		return 0;
	if (counts_programs || logged_operations)
		program_of_task(&is.program);
	is.began = now();
	if (map_put(&requests, &key, &is, 0))
		lose(LOST_CALLS);
	return 0;
}

ONCE int complete(struct io_kiocb *request, s32 result)
{
	u64 key = (u64)request;
	struct request *known = map_get(&requests, &key), is;
	struct ended ended = { .result = result };
	struct target target = {};
	struct file *file = 0;
	u32 flags = 0;
	u8 opcode = 0;

	if (!known)
		return 0;
	is = *known;
	map_remove(&requests, &key);
	READ(opcode, request->opcode);
	READ(file, request->file);
	u32 operation = ring_operation(opcode);
	if (operation == WRITES)
		flags = WRITING;
	int is_file = file && target_of(file, &target, &flags, is.tgid);
	u64 ns = now() - is.began;
	if (operation == SYNCS || (operation == WRITES && flags & DURABLE))
		tell_flush(&target.folder, is.tgid, IO_URING_REQUEST | opcode, flags, is.began, result);
	if (is_flush_trace || !is_file)
		return 0;
	ended.began = is.began;
	ended.ns = ns;
	ended.tgid = is.tgid;
	ended.number = IO_URING_REQUEST | opcode;
	ended.operation = operation == READS ? LOG_READ : operation == WRITES ? LOG_WRITE : LOG_FLUSH;
	ended.flags = WAITED(operation == SYNCS || flags & DIRECT || (operation == READS && is.missed) ||
			     (operation == WRITES && flags & DURABLE));
	log_ended(&ended, &target, &is.program);
	if (result < 0)
		return 0;
	struct done done = { .bytes = result, .ns = ns, .operation = operation, .flags = flags,
			     .missed = is.missed };
	count(&target.folder, &is.program, &done);
	return 0;
}

// Since Linux 6.11 or so: (ring, request, entry of the completion queue).
SEC("tp_btf/io_uring_complete")
int hot_complete(u64 *context)
{
	struct io_uring_cqe *entry = (void *)context[2];
	s32 result = -1;

	if (!entry)
		return 0;
	READ(result, entry->res);
	return complete((void *)context[1], result);
}

// Since Linux 5.17: (ring, request, data, result, flags, ..). Later kernels
// refuse it, since they have three arguments; in earlier ones the second is no
// request that is known, and nothing is counted.
SEC("tp_btf/io_uring_complete")
int hot_complete_old(u64 *context)
{
	return complete((void *)context[1], context[3]);
}

// ---- pages ----

ONCE u64 bytes_of(struct folio *folio)
{
	struct folio___5_18 *older = (void *)folio;
	unsigned long flags = 0;
	u32 pages = 0;

	// In each kernel so far they come first.
	read_kernel(&flags, sizeof(flags), folio);
	if (!(flags >> __builtin_preserve_enum_value(*(typeof(enum pageflags) *)PG_head, 1) & 1))
		return page_size;
	if (EXISTS(folio->_nr_pages))
		READ(pages, folio->_nr_pages);
	else if (EXISTS(older->_folio_nr_pages))
		READ(pages, older->_folio_nr_pages);
	return (u64)page_size * (pages ? pages : 1);
}

#define IO_WORKER 0x10
#define KERNEL_THREAD 0x200000

// The folder of a plain file of which only the inode is known: of several
// links, one.
INLINE struct counts *counts_of_inode(struct inode *inode, struct target *target)
{
	struct hlist_node *first = 0;
	struct dentry *dentry, *parent = 0;
	u16 mode = 0;

	READ(mode, inode->i_mode);
	READ(first, inode->i_dentry.first);
	if ((mode & 0170000) != 0100000 || !first)
		return 0;
	if (EXISTS(((struct dentry *)0)->d_u.d_alias))
		dentry = (void *)first - OFFSET(((struct dentry *)0)->d_u.d_alias);
	else
		dentry = (void *)first - OFFSET(((struct dentry___flat *)0)->d_alias);
	READ(parent, dentry->d_parent);
	if (!parent || !key_of(parent, &target->folder))
		return 0;
	target->inode = (u64)inode;
	target->dentry = (u64)dentry;
	return counts_of(parent, &target->folder);
}

// Counts and reports a page of a mapping.
ONCE void count_page(struct inode *inode, u32 number, u64 bytes, u32 tgid)
{
	struct ended ended = {
		.result = bytes, .tgid = tgid, .number = number, .operation = LOG_MAPPED,
		.flags = LOGGED_UNTIMED,
	};
	struct target target = {};
	struct program program = {};
	struct counts *counts = counts_of_inode(inode, &target);

	if (!counts)
		return;
	if (counts_programs || logged_operations)
		program_of_task(&program);
	count_process(counts, &target.folder, tgid);
	if (number == MAPPED_READ)
		ADD(counts->bytes_missed, bytes);
	else
		ADD(counts->bytes_mapped, bytes);
	counts = counts_of_program(&program);
	if (counts && number == MAPPED_READ)
		ADD(counts->bytes_missed, bytes);
	else if (counts)
		ADD(counts->bytes_mapped, bytes);
	if (logged_operations & LOG_MAPPED) {
		ended.began = now();
		log_call(&ended, &target, &program);
	}
}

INLINE u32 task_flags(void)
{
	struct task_struct *task = (void *)current_task();
	u32 flags = 0;

	READ(flags, task->flags);
	return flags;
}

// Whether a file has its pages in another file system: overlayfs, and FUSE where
// it passes through.
ONCE int is_layered(struct inode *inode)
{
	struct super_block *super = 0;
	unsigned long magic = 0;

	READ(super, inode->i_sb);
	READ(magic, super->s_magic);
	return magic == 0x794c7630 || magic == 0x65735546;
}

// A request of io_uring waits for what it reads.
INLINE void miss_in_ring(struct call *call)
{
	u64 key = call->pointers;
	struct request *request = map_get(&requests, &key);

	if (request)
		request->missed = 1;
}

// A page that was not in memory is about to be read, unless it is about to be
// written to.
SEC("tp_btf/mm_filemap_add_to_page_cache")
int hot_miss(u64 *context)
{
	struct folio *folio = (void *)context[0];
	u64 thread = thread_and_process();
	struct call *call = map_get(&calls, &thread);
	struct address_space *mapping = 0;
	struct inode *inode = 0;
	struct folder key = {};
	struct program program = {};
	struct counts *counts;

	if (!folio || !is_watched(thread >> 32) || task_flags() & (IO_WORKER | KERNEL_THREAD))
		return 0;
	if (is_32_bit())
		return 0;
	READ(mapping, folio->mapping);
	READ(inode, mapping->host);
	if (!inode)
		return 0;
	if (call) {
		u32 operation = call->operation;
		if (operation == RING) {
			operation = call->ring_operation;
			if (operation == READS)
				miss_in_ring(call);
		}
		int is_copy = operation == SENDFILE || operation == COPIES;
		if (operation == WRITES || operation == CHANGES || operation == AIO)
			return 0;
		// In a copy the pages may be those that are written.
		int is_its = call->from.inode == (u64)inode ||
			     (call->from.inode && !call->to.inode &&
			      is_layered((void *)call->from.inode));
		if (is_copy && !is_its)
			return 0;
		if (is_its) {
			call->missed = 1;
			key = call->from.folder;
			counts = map_get(&folders, &key);
			if (counts)
				ADD(counts->bytes_missed, bytes_of(folio));
			if (counts_programs)
				program_of_task(&program);
			counts = counts_of_program(&program);
			if (counts)
				ADD(counts->bytes_missed, bytes_of(folio));
			return 0;
		}
	}
	count_page(inode, MAPPED_READ, bytes_of(folio), thread >> 32);
	return 0;
}

// A page became dirty. In no call that writes, a store through a mapping did
// it.
SEC("tp_btf/writeback_dirty_folio")
int hot_dirty(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct address_space *mapping = (void *)context[1];
	u64 thread = thread_and_process();
	struct call *call = map_get(&calls, &thread);
	struct inode *inode = 0;

	// Some kernels say of their arguments that they can be missing, and load
	// nothing that does not look.
	if (!folio || !mapping)
		return 0;
	if (!is_watched(thread >> 32) || task_flags() & (IO_WORKER | KERNEL_THREAD))
		return 0;
	if (is_32_bit())
		return 0;
	if (call && call->operation != READS && call->operation != SYNCS &&
	    call->operation != FLUSHES)
		return 0;
	READ(inode, mapping->host);
	if (inode)
		count_page(inode, MAPPED_WRITE, bytes_of(folio), thread >> 32);
	return 0;
}

// So that a test can tell whether the object was made of this.
const char source_of_this[] SEC("source") = SOURCE;

// Helpers that read the kernel's memory are for programs under a licence that
// suits the kernel; this one is the same as that of all the rest.
char license_of_this[] SEC("license") = "Dual MIT/GPL";

/**
 * The kind of file system of a folder, by the number that statfs returns on Linux (statfs(2), linux/magic.h).
 *
 * SQLite's write-ahead log needs shared memory and reliable locks: a network file system provides neither
 * reliably (https://sqlite.org/wal.html, https://sqlite.org/faq.html#q5).
 */
import { statfs } from 'node:fs/promises';
import { reasonOf } from '../refused.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';

type Kind = 'local' | 'network' | 'user space' | 'memory';

interface FileSystem {
  readonly name: string;
  readonly kind: Kind;
}

const FILE_SYSTEMS: ReadonlyMap<number, FileSystem> = new Map([
  [0x6969, { name: 'NFS', kind: 'network' }],
  [0x517b, { name: 'SMB', kind: 'network' }],
  [0xff534d42, { name: 'CIFS', kind: 'network' }],
  [0xfe534d42, { name: 'SMB', kind: 'network' }],
  [0x5346414f, { name: 'AFS', kind: 'network' }],
  [0x6b414653, { name: 'AFS', kind: 'network' }],
  [0x73757245, { name: 'Coda', kind: 'network' }],
  [0x00c36400, { name: 'Ceph', kind: 'network' }],
  [0x01021997, { name: '9P', kind: 'network' }],
  [0x0bd00bd0, { name: 'Lustre', kind: 'network' }],
  [0x47504653, { name: 'GPFS', kind: 'network' }],
  [0x786f4256, { name: "VirtualBox's shared folder", kind: 'network' }],
  [0x65735546, { name: 'FUSE', kind: 'user space' }],
  [0x01021994, { name: 'tmpfs', kind: 'memory' }],
  [0x858458f6, { name: 'ramfs', kind: 'memory' }],
  [0xef53, { name: 'ext4', kind: 'local' }],
  [0x58465342, { name: 'XFS', kind: 'local' }],
  [0x9123683e, { name: 'Btrfs', kind: 'local' }],
  [0x2fc12fc1, { name: 'ZFS', kind: 'local' }],
  [0x794c7630, { name: 'overlayfs', kind: 'local' }],
  [0xf2f52010, { name: 'F2FS', kind: 'local' }],
]);

/** Null for an unknown kind, which is every one outside Linux. */
export function fileSystemOf(type: number): FileSystem | null {
  return process.platform === 'linux' ? (FILE_SYSTEMS.get(type >>> 0) ?? null) : null;
}

/** Whether the databases can be there. */
export async function checkDataFileSystem(folder: string): Promise<Outcome> {
  const found = await statfs(folder).then((disk) => fileSystemOf(disk.type), reasonOf);
  if (typeof found === 'string') return warn(`${folder}: ${found}`, 'Check that the disk is mounted.');
  return fileSystemOutcome(found);
}

/** The rule of {@link checkDataFileSystem}, separate for its tests. */
export function fileSystemOutcome(found: FileSystem | null): Outcome {
  const move = 'Stop Wirewatch, move the data folder to a local disk, and name it with --data.';
  switch (found?.kind) {
    case undefined:
      return ok('unknown kind of file system; it must be on a local disk');
    case 'network':
      return bad(`${found.name}, a network file system: databases can be damaged on it`, move);
    case 'user space':
      return warn('FUSE: whether acknowledged writes are safe depends on the program behind it', move);
    case 'memory':
      return warn(`${found.name}: everything on it is lost when the machine restarts`, move);
    case 'local':
      return ok(`${found.name}, a local file system`);
  }
}

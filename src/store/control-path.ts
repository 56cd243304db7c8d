/** A way to the control socket that is short enough for the system, however deep the data folder is. */
import { closeSync, constants, existsSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { misconfigured } from '../refused.ts';
import type { DataFolder } from './folder.ts';

/** `sun_path` of Linux; macOS has four bytes less. */
const PATH_BYTES_MAX = process.platform === 'linux' ? 107 : 103;
const DESCRIPTORS = '/proc/self/fd';

/** `close` it once the socket listens or is connected. @throws Refused `configuration` where there is none; the file system's error if the folder cannot be opened */
export function socketPath({ root, control }: DataFolder) {
  if (Buffer.byteLength(control) <= PATH_BYTES_MAX) return { text: control, close() {} };
  if (!existsSync(DESCRIPTORS))
    throw misconfigured(
      `the path ${control} is longer than the ${PATH_BYTES_MAX} bytes that this system allows for a socket. Choose a data folder with a shorter path, or reach this one by a link.`,
    );
  const folder = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY);
  return { text: `${DESCRIPTORS}/${folder}/${basename(control)}`, close: () => closeSync(folder) };
}

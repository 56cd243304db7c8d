/**
 * Takes symbols and debugging notes out of Node's Linux binary, a seventh of its bytes, before anything is injected
 * into it (afterwards it would break).
 *
 * `strip` (binutils) does the same, but knows the host's architecture only, differs by version, and may be missing;
 * this gives the same bytes everywhere. What a program needs at run time lies in its segments; all sections outside
 * of them stand behind the last segment, so the file is cut there. Section numbers must stay, since the dynamic
 * symbols refer to them: the sections that are cut off become empty ones (ELF-64 object file format).
 */

const PROGRAM_HEADER_BYTES = 56;
const SECTION_HEADER_BYTES = 64;
const FLAG_ALLOCATED = 2n;

/**
 * @param {Buffer} binary an ELF file, 64 bits, little-endian
 * @returns {Buffer} a shorter one that runs the same
 */
export function stripped(binary) {
  const header = readHeader(binary);
  const end = header.segments.reduce((greatest, { offset, bytes }) => Math.max(greatest, offset + bytes), 0);
  const names = header.sections[header.namesAt];
  const namesOffset = align(end);
  const tableOffset = align(namesOffset + names.bytes);
  const result = Buffer.alloc(tableOffset + header.sections.length * SECTION_HEADER_BYTES);
  binary.copy(result, 0, 0, end);
  binary.copy(result, namesOffset, names.offset, names.offset + names.bytes);
  result.writeBigUInt64LE(BigInt(tableOffset), 0x28);
  header.sections.forEach((section, index) => {
    const at = tableOffset + index * SECTION_HEADER_BYTES;
    // What is left as zeros is a section of type NULL.
    if (!section.isAllocated && index !== header.namesAt) return;
    binary.copy(result, at, section.at, section.at + SECTION_HEADER_BYTES);
    if (index === header.namesAt) result.writeBigUInt64LE(BigInt(namesOffset), at + 0x18);
  });
  return result;
}

/** The machine of an ELF file, as its header numbers it; null where it is none of 64 bits, little-endian. */
export function elfMachine(binary) {
  const isElf = binary.length > 64 && binary.readUInt32BE(0) === 0x7f454c46;
  return isElf && binary[4] === 2 && binary[5] === 1 ? binary.readUInt16LE(0x12) : null;
}

function readHeader(binary) {
  if (elfMachine(binary) === null) throw new Error('not an ELF file of 64 bits, little-endian');
  const table = (offsetAt, bytesAt, countAt, bytes) => {
    if (binary.readUInt16LE(bytesAt) !== bytes) throw new Error('an ELF file with unknown headers');
    const offset = Number(binary.readBigUInt64LE(offsetAt));
    return Array.from({ length: binary.readUInt16LE(countAt) }, (_, index) => offset + index * bytes);
  };
  const number = (at) => Number(binary.readBigUInt64LE(at));
  return {
    segments: table(0x20, 0x36, 0x38, PROGRAM_HEADER_BYTES).map((at) => ({
      offset: number(at + 0x08),
      bytes: number(at + 0x20),
    })),
    sections: table(0x28, 0x3a, 0x3c, SECTION_HEADER_BYTES).map((at) => ({
      at,
      offset: number(at + 0x18),
      bytes: number(at + 0x20),
      isAllocated: (binary.readBigUInt64LE(at + 0x08) & FLAG_ALLOCATED) !== 0n,
    })),
    namesAt: binary.readUInt16LE(0x3e),
  };
}

function align(offset) {
  return Math.ceil(offset / 16) * 16;
}

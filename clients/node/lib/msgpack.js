// SPDX-License-Identifier: MIT
// msgpack of what JSON has too, and bytes. A value that would arrive as another
// one is refused; what is read cannot claim more memory than its bytes.

import { ascii, shown } from './check.js';

const DEPTH = 32; // levels of a body
const KINDS = 'null, a boolean, a number, a text, a Buffer, an array or a '
  + 'plain object';
let spare = Buffer.alloc(8192);

/** A value that no job can carry; its path from inside out. */
class Wrong extends Error {
  path = [];
}

class Writer {
  at = 0;
  bytes = spare ?? Buffer.alloc(8192);

  constructor() {
    spare = undefined; // a getter of the value may encode something
  }

  room(size) {
    if (this.at + size > this.bytes.length) {
      const larger = Buffer.alloc(2 * (this.at + size));
      this.bytes.copy(larger, 0, 0, this.at);
      this.bytes = larger;
    }
  }

  /** A first byte and a number of so many bytes behind it. */
  head(first, size, value) {
    this.room(1 + size);
    this.bytes[this.at] = first;
    if (size > 0) this.bytes.writeUIntBE(value, this.at + 1, size);
    this.at += 1 + size;
  }

  /** A length; `few` of them are in the first byte, from `short` on. */
  length(count, short, few, long) {
    if (count < few) this.head(short + count, 0);
    else if (long[0] && count < 0x100) this.head(long[0], 1, count);
    else if (count < 0x10000) this.head(long[1], 2, count);
    else this.head(long[2], 4, count);
  }

  integer(value) {
    if (value >= -32 && value < 128) this.head(value & 0xff, 0);
    else if (value >= 0) this.natural(value);
    else if (value >= -0x80) this.head(0xd0, 1, value + 0x100);
    else if (value >= -0x8000) this.head(0xd1, 2, value + 0x10000);
    else if (value >= -0x80000000) this.head(0xd2, 4, value + 0x100000000);
    else this.long(0xd3, BigInt.asUintN(64, BigInt(value)));
  }

  natural(value) {
    if (value < 0x100) this.head(0xcc, 1, value);
    else if (value < 0x10000) this.head(0xcd, 2, value);
    else if (value < 0x100000000) this.head(0xce, 4, value);
    else this.long(0xcf, BigInt(value));
  }

  long(first, value) {
    this.head(first, 0);
    this.room(8);
    this.at = this.bytes.writeBigUInt64BE(value, this.at);
  }

  number(value) {
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
      this.integer(value);
      return;
    }
    if (Number.isInteger(value) && value !== 0) {
      throw new Wrong(`is ${value}, which JavaScript may have rounded: give a `
        + 'BigInt, or a text');
    }
    if (!Number.isFinite(value)) {
      throw new Wrong(`is ${value}, which JSON does not have: give null or a `
        + 'text');
    }
    this.head(0xcb, 0);
    this.room(8);
    this.at = this.bytes.writeDoubleBE(value, this.at);
  }

  bigint(value) {
    if (value < -(2n ** 63n) || value >= 2n ** 64n) {
      throw new Wrong(`is ${shown(value)}, beyond 64 bits: give a text`);
    }
    const number = Number(value);
    if (Number.isSafeInteger(number)) this.integer(number);
    else this.long(value < 0 ? 0xd3 : 0xcf, BigInt.asUintN(64, value));
  }

  string(value) {
    if (/\p{Surrogate}/u.test(value)) {
      throw new Wrong('has a lone surrogate, which is no UTF-8: give bytes');
    }
    const size = Buffer.byteLength(value);
    this.length(size, 0xa0, 32, [0xd9, 0xda, 0xdb]);
    this.room(size);
    this.at += this.bytes.write(value, this.at);
  }

  binary(value) {
    this.length(value.length, 0, 0, [0xc4, 0xc5, 0xc6]);
    this.room(value.length);
    this.bytes.set(value, this.at);
    this.at += value.length;
  }

  array(value, depth) {
    const { length } = value; // a getter may make more
    if (Object.keys(value).length > length) {
      throw new Wrong('is an array with more than its elements: give an '
        + 'object, or the elements');
    }
    this.length(length, 0x90, 16, [0, 0xdc, 0xdd]);
    for (let i = 0; i < length; i++) {
      try {
        this.value(value[i], depth + 1);
      } catch (error) {
        error.path?.push(`[${i}]`);
        throw error;
      }
    }
  }

  map(value, depth) {
    const names = Object.keys(value);
    if (Object.getOwnPropertySymbols(value).length > 0) {
      throw new Wrong('has a symbol as a key: keys are texts');
    }
    this.length(names.length, 0x80, 16, [0, 0xde, 0xdf]);
    for (const name of names) {
      try {
        this.string(name);
        this.value(value[name], depth + 1);
      } catch (error) {
        error.path?.push(`.${name}`);
        throw error;
      }
    }
  }

  object(value, depth) {
    if (Array.isArray(value)) return this.array(value, depth);
    if (value instanceof Uint8Array) return this.binary(value);
    const prototype = Object.getPrototypeOf(value);
    // Also of another realm, such as a vm's.
    if (prototype === null || Object.getPrototypeOf(prototype) === null &&
        Object.prototype.toString.call(value) === '[object Object]') {
      return this.map(value, depth);
    }
    const name = value.constructor?.name;
    throw new Wrong(`is a ${name || 'foreign object'}, which no job can carry: `
      + `give ${KINDS}`);
  }

  value(value, depth) {
    if (depth > DEPTH) throw new Wrong(`is more than ${DEPTH} levels deep`);
    switch (typeof value) {
    case 'string': return this.string(value);
    case 'number': return this.number(value);
    case 'boolean': return this.head(value ? 0xc3 : 0xc2, 0);
    case 'bigint': return this.bigint(value);
    case 'object':
      return value === null ? this.head(0xc0, 0) : this.object(value, depth);
    case 'undefined':
      throw new Wrong('is undefined: give null, or leave it out');
    default:
      throw new Wrong(`is a ${typeof value}, which no job can carry: give `
        + KINDS);
    }
  }
}

/** The bytes of a value that is called so. */
export function encode(value, name = 'body') {
  const writer = new Writer();
  try {
    writer.value(value, 1);
    return Buffer.from(writer.bytes.subarray(0, writer.at));
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    const path = ascii(name + error.path.reverse().join(''));
    throw new RangeError(`${path.length > 80 ? `${path.slice(0, 77)}...` : path
    } ${error.message}`);
  } finally {
    if (writer.bytes.length <= 65536) spare = writer.bytes;
  }
}

/** What msgpack has and JavaScript has not. */
export class Extension {
  constructor(type, data) {
    Object.assign(this, { type, data });
  }
}

export class Reader {
  constructor(bytes, at = 0) {
    Object.assign(this, { bytes, at });
  }

  /** Where so many bytes are, which are read then. */
  take(size) {
    const { at } = this;
    if (size > this.bytes.length - at) throw new RangeError('it is cut off');
    this.at = at + size;
    return at;
  }

  number(size) {
    const at = this.take(size);
    return this.bytes.readUIntBE(at, size);
  }

  text(size) {
    const at = this.take(size);
    return this.bytes.utf8Slice(at, at + size);
  }

  binary(size) {
    const at = this.take(size);
    return this.bytes.subarray(at, at + size);
  }

  extension(size) {
    const type = this.bytes.readInt8(this.take(1));
    return new Extension(type, this.binary(size));
  }

  long(isSigned) {
    const at = this.take(8);
    const value = isSigned ? this.bytes.readBigInt64BE(at)
      : this.bytes.readBigUInt64BE(at);
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }

  /** Each value has at least one byte. */
  check(count, depth) {
    if (count > this.bytes.length - this.at) {
      throw new RangeError('it says more than it has');
    }
    if (depth >= DEPTH && count > 0) {
      throw new RangeError(`it is more than ${DEPTH} levels deep`);
    }
  }

  array(count, depth) {
    this.check(count, depth);
    const values = [];
    for (let i = 0; i < count; i++) values.push(this.value(depth + 1));
    return values;
  }

  map(count, depth) {
    this.check(2 * count, depth);
    const map = {};
    for (let i = 0; i < count; i++) {
      const key = this.value(depth + 1);
      if (typeof key !== 'string' && typeof key !== 'number') {
        throw new RangeError('a key is neither a text nor a number');
      }
      const value = this.value(depth + 1);
      if (key === '__proto__') {
        Object.defineProperty(map, key, { value, writable: true,
          enumerable: true, configurable: true });
      } else {
        map[key] = value;
      }
    }
    return map;
  }

  value(depth = 1) {
    const first = this.bytes[this.take(1)];
    if (first < 0x80) return first;
    if (first < 0x90) return this.map(first - 0x80, depth);
    if (first < 0xa0) return this.array(first - 0x90, depth);
    if (first < 0xc0) return this.text(first - 0xa0);
    if (first >= 0xe0) return first - 0x100;
    return this.rest(first, depth);
  }

  rest(first, depth) {
    switch (first) {
    case 0xc0: return null;
    case 0xc2: return false;
    case 0xc3: return true;
    case 0xc4: case 0xc5: case 0xc6:
      return this.binary(this.number(1 << first - 0xc4));
    case 0xc7: case 0xc8: case 0xc9:
      return this.extension(this.number(1 << first - 0xc7));
    case 0xca: return this.bytes.readFloatBE(this.take(4));
    case 0xcb: return this.bytes.readDoubleBE(this.take(8));
    case 0xcc: case 0xcd: case 0xce: return this.number(1 << first - 0xcc);
    case 0xcf: return this.long(false);
    case 0xd0: return this.bytes.readInt8(this.take(1));
    case 0xd1: return this.bytes.readInt16BE(this.take(2));
    case 0xd2: return this.bytes.readInt32BE(this.take(4));
    case 0xd3: return this.long(true);
    case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8:
      return this.extension(1 << first - 0xd4);
    case 0xd9: case 0xda: case 0xdb:
      return this.text(this.number(1 << first - 0xd9));
    case 0xdc: case 0xdd:
      return this.array(this.number(2 << first - 0xdc), depth);
    case 0xde: case 0xdf:
      return this.map(this.number(2 << first - 0xde), depth);
    default: throw new RangeError('it is no msgpack');
    }
  }

  end() {
    if (this.at < this.bytes.length) throw new RangeError('more is behind it');
  }
}

export function decode(bytes) {
  const reader = new Reader(bytes);
  const value = reader.value();
  reader.end();
  return value;
}

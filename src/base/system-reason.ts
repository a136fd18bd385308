// The answer of the operating system in the words of a message: "it does not exist", not "ENOENT: no such file or directory".
import { describeError, errnoOf, failure, RolloutError } from "./errors.ts";

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of the path is not a directory",
  EEXIST: "it is already there",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the disk",
  EDQUOT: "this user's quota of the disk is used up",
  EFBIG: "the file would be larger than is allowed",
  ENAMETOOLONG: "the name is too long",
  EMFILE: "too many open files",
};

/** For the value `reason` of errors about files. */
export function systemReason(error: unknown): string {
  const errno = errnoOf(error);
  return (errno !== undefined ? WORDS[errno] : undefined) ?? errno ?? describeError(error);
}

const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/**
 * A file or directory that could not be written: file_unwritable, or output_unwritten when all that is missing is space. An
 * error of the table stays as it is.
 */
export function unwritable(file: string, error: unknown): RolloutError {
  if (error instanceof RolloutError) return error;
  const code = FULL.has(errnoOf(error) ?? "") ? "output_unwritten" : "file_unwritable";
  return failure(code, { file, reason: systemReason(error) }, error);
}

/** A handler for rejections of writes to that file or directory: throws the row that `unwritable` makes of one. */
export function asUnwritable(file: string): (error: unknown) => never {
  return (error) => {
    throw unwritable(file, error);
  };
}

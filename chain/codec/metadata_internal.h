/* The parsed metadata: metadata*.c write it, the other files of this room read it. All strings and
 * constants point into `blob`, the metadata's own copy of the input. */
#ifndef CHAIN_CODEC_METADATA_INTERNAL_H
#define CHAIN_CODEC_METADATA_INTERNAL_H

#include "base/buf.h"
#include "chain/codec/metadata.h"
#include "chain/codec/scale.h"

enum { TYPE_NONE = 0xffffffff };        /* no such type */
enum { TYPE_SIZE_VARIES = 0xffffffff }; /* see struct type.plain_size */
enum { METADATA_NEST_MAX = 256 };       /* structs in structs; a cycle of them stops here too */
enum { METADATA_PALLETS_MAX = 256 };
enum { METADATA_BYTES_MAX = 64 * 1024 * 1024 };

/* In the order of scale-info's TypeDef: the value is the byte on the wire. */
enum type_kind {
    TYPE_COMPOSITE,
    TYPE_VARIANT,
    TYPE_SEQUENCE,
    TYPE_ARRAY,
    TYPE_TUPLE,
    TYPE_PRIMITIVE,
    TYPE_COMPACT,
    TYPE_BITS,
};

/* In the order of scale-info's TypeDefPrimitive. */
enum type_prim {
    PRIM_BOOL,
    PRIM_CHAR,
    PRIM_STR,
    PRIM_U8,
    PRIM_U16,
    PRIM_U32,
    PRIM_U64,
    PRIM_U128,
    PRIM_U256,
    PRIM_I8,
    PRIM_I16,
    PRIM_I32,
    PRIM_I64,
    PRIM_I128,
    PRIM_I256,
    PRIM_COUNT,
};

/* Types that the codec treats specially, recognised by the last segment of their path. */
enum type_role {
    ROLE_NONE,
    ROLE_OPTION,
    ROLE_RESULT,
    ROLE_MULTI_ADDRESS,
    ROLE_ACCOUNT,
    ROLE_DISPATCH_ERROR,
    ROLE_ERA,
    ROLE_U256, /* four u64, lowest first */
};

struct type {
    uint8_t kind;     /* enum type_kind */
    uint8_t prim;     /* enum type_prim, of TYPE_PRIMITIVE */
    uint8_t role;     /* enum type_role */
    const char *name; /* last segment of the path; "" without one */
    uint32_t first;   /* composite, tuple: into fields; variant: into variants */
    uint32_t count;
    uint32_t inner; /* sequence, array, compact: element; bits: store type */
    uint32_t len;   /* array: elements; bits: type of the bit order */
    /* offset of the type parameters in the blob (read for V14's extrinsic only) */
    uint32_t params_at;
    uint32_t path_at, path_count; /* offset of the path's segments; the last one is `name` */
    uint32_t plain_size;          /* bytes, if every bit pattern of that size is a value */
};

struct type_field {
    const char *name; /* NULL: unnamed */
    uint32_t type;
    uint32_t type_name_at; /* offset of its type's name in the Rust source; 0: none */
};

struct type_variant {
    const char *name;
    uint32_t first, count; /* into fields */
    uint8_t index;
};

struct metadata_const {
    const char *name;
    const uint8_t *value;
    uint32_t len;
};

struct metadata_pallet {
    const char *name;
    uint32_t calls, event, error;      /* types; TYPE_NONE */
    uint32_t first_const, const_count; /* into consts */
    uint8_t index;
};

/* What an extension adds: to the extrinsic and the payload (explicit), to the payload alone
 * (implicit). */
enum extension_kind {
    EXT_EMPTY,         /* nothing, nothing; known by its types */
    EXT_SPEC_VERSION,  /* -, u32 */
    EXT_TX_VERSION,    /* -, u32 */
    EXT_GENESIS,       /* -, hash */
    EXT_MORTALITY,     /* Era, hash of the era's first block */
    EXT_NONCE,         /* Compact, - */
    EXT_TIP,           /* Compact, - */
    EXT_TIP_ASSET,     /* Compact and Option<asset> None, - */
    EXT_METADATA_HASH, /* mode 0, Option<hash> None */
    EXT_NONE,          /* not known: Option None, - */
    EXT_CONFIGURED,    /* not known: bytes of the configuration */
    EXT_UNKNOWN,
};

enum address_kind { ADDRESS_UNKNOWN, ADDRESS_MULTI, ADDRESS_PLAIN };
enum signature_kind { SIGNATURE_UNKNOWN, SIGNATURE_MULTI, SIGNATURE_ETHEREUM };

/* The form of this chain's signed extrinsics, resolved once so that signing needs no look-up. */
struct extrinsic_format {
    enum address_kind address;
    uint8_t address_id;  /* MultiAddress: index of Id */
    uint8_t account_len; /* 32 or 20 */
    enum signature_kind signature;
    uint8_t signature_index[3]; /* MultiSignature: by enum key_scheme */
    bool nonce_64;              /* nonces above u32 fit */
    u128 tip_max;               /* the highest tip that fits */
    struct err unreadable;      /* code 0: signed extrinsics can be taken apart */
    struct err unverifiable;    /* code 0: and what they signed is known */
    struct err refused;         /* code 0: everything is supported */
};

/* Of EXT_CONFIGURED. */
struct extension_bytes {
    struct buf explicit_part, implicit_part;
};

/* The layout of AccountInfo, the value of System.Account. free_size 0: it has no free balance that
 * we can read. */
struct account_format {
    uint32_t size, free_at, free_size;
};

/* What CheckMetadataHash signs; why.code 0: it is known. */
struct metadata_hash {
    uint8_t digest[32];
    struct err why;
};

struct metadata {
    uint8_t *blob;
    size_t blob_len;
    unsigned version;

    struct type *types;
    size_t type_count, type_cap;
    struct type_field *fields;
    size_t field_count, field_cap;
    struct type_variant *variants;
    size_t variant_count, variant_cap;
    struct metadata_pallet *pallets;
    size_t pallet_count, pallet_cap;
    struct metadata_const *consts;
    size_t const_count, const_cap;
    struct metadata_extension *extensions;
    enum extension_kind *extension_kinds;    /* one for each of extensions */
    struct extension_bytes *extension_bytes; /* the same */
    size_t extension_count, extension_cap;

    struct metadata_pallet *by_index[METADATA_PALLETS_MAX];

    unsigned extrinsic_version;
    bool lacks_set_0; /* V16: of transaction extensions, which extrinsics of format v4 have */
    uint32_t type_extrinsic; /* V14 only */
    uint32_t type_call, type_address, type_signature;
    uint32_t type_events;  /* value of System.Events */
    uint32_t type_account; /* value of System.Account */
    struct account_format account;
    uint32_t type_event_record, type_dispatch_error;
    struct extrinsic_format format;
    struct metadata_hash hash;
};

/* A parse in progress. `in` moves over the blob; the first failure fills err. */
struct metadata_parse {
    struct metadata *md;
    struct scale_in in;
    const uint8_t *item; /* start of the item being read, for error texts */
    struct err *err;
};

/* metadata_read.c: parts that all sections share. On a failure in.bad is set. */
const char *metadata__str(struct metadata_parse *p);
void metadata__skip_str(struct metadata_parse *p);
void metadata__skip_strs(struct metadata_parse *p); /* Vec<String> */
uint32_t metadata__type_ref(struct metadata_parse *p);
uint32_t metadata__option_type_ref(struct metadata_parse *p);
void metadata__skip_deprecation(struct metadata_parse *p);      /* V16 only, else nothing */
void metadata__skip_enum_deprecation(struct metadata_parse *p); /* V16 only, else nothing */
void metadata__item(struct metadata_parse *p);                  /* an item starts here */
/* Return ERR_METADATA with what is wrong, and in which item. */
int metadata__fail(struct metadata_parse *p, const char *what);
/* Make room for one more element; returns the array. */
void *metadata__append(void *array, size_t *count, size_t *cap, size_t size);

/* metadata_registry.c */
int metadata__read_registry(struct metadata_parse *p);
int metadata__check_registry(struct metadata_parse *p); /* ids in range, sizes, roles */

/* metadata_pallets.c */
int metadata__read_pallets(struct metadata_parse *p);
int metadata__read_apis(struct metadata_parse *p);

/* metadata_extrinsic.c */
int metadata__read_extrinsic(struct metadata_parse *p);
int metadata__resolve_extrinsic(struct metadata_parse *p); /* V14's parameters; ids in range */

/* metadata_account.c */
void metadata__resolve_account(struct metadata *md);

/* extrinsic_format.c */
void extrinsic__resolve_format(struct metadata *md);
void extrinsic__format_done(struct metadata *md);

static inline const struct type *metadata__type(const struct metadata *md, uint32_t id)
{
    return id < md->type_count ? &md->types[id] : NULL;
}

/* The variant with this index or name, of a type of kind TYPE_VARIANT. NULL: none. */
const struct type_variant *metadata__variant(const struct metadata *md, const struct type *t,
                                             uint8_t index);
const struct type_variant *metadata__variant_named(const struct metadata *md, const struct type *t,
                                                   const char *name);
const struct metadata_pallet *metadata__pallet_named(const struct metadata *md, const char *name);

/* The type inside of wrappers: a struct of one field stands for that field. */
uint32_t metadata__unwrap(const struct metadata *md, uint32_t id);

/* type_text.c: append "Vec<RuntimeCall>", at most about 160 characters. numbered: by type id, the
 * types whose names get their id ("Location#64"); NULL: none. */
void metadata__type_text(const struct metadata *md, uint32_t id, const bool *numbered,
                         struct buf *out);

/* Numbers the types that an extrinsic can contain, in the order of their ids, where numbers[id] is
 * TYPE_NONE before; it stays so for types that are not reachable or have no bytes. */
void metadata__number_types(const struct metadata *md, uint32_t *numbers);

/* System.SS58Prefix; -1: the chain has no such constant. */
int metadata__ss58_prefix(const struct metadata *md);

#endif

/* An intrusive doubly linked list. A node is on at most one list; list_remove of a node that is on
 * none is allowed (a zero-initialised node is on none). */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline bool list_linked(const struct list *node)
{
    return node->next != NULL;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_remove(struct list *node)
{
    if (!node->next)
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

static inline struct list *list_first(const struct list *head)
{
    return head->next == head ? NULL : head->next;
}

#define LIST_EACH(pos, head) for (struct list *pos = (head)->next; pos != (head); pos = pos->next)

#endif

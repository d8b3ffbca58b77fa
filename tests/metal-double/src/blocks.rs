//! Blocks: the public layout of clang's block literals, copied to the heap and counted.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicIsize, Ordering::SeqCst};

use crate::runtime::Id;

#[repr(C)]
struct Descriptor {
    reserved: usize,
    size: usize,
    copy: Option<unsafe extern "C" fn(*mut Block, *const Block)>,
    dispose: Option<unsafe extern "C" fn(*const Block)>,
}

#[repr(C)]
pub struct Block {
    isa: *const c_void,
    flags: c_int,
    reserved: c_int,
    invoke: unsafe extern "C-unwind" fn(*const Block, Id),
    descriptor: *const Descriptor,
}

#[unsafe(no_mangle)]
pub static _NSConcreteStackBlock: [usize; 32] = [0; 32];
#[unsafe(no_mangle)]
pub static _NSConcreteGlobalBlock: [usize; 32] = [0; 32];
static MALLOC_BLOCK: [usize; 32] = [0; 32];

const NEEDS_FREE: c_int = 1 << 24;
const HAS_COPY: c_int = 1 << 25;
const GLOBAL: c_int = 1 << 28;

/// How many blocks are on the heap.
pub static BLOCKS_ALIVE: AtomicIsize = AtomicIsize::new(0);

unsafe fn flags<'a>(block: *mut Block) -> &'a AtomicI32 {
    AtomicI32::from_ptr(&raw mut (*block).flags)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _Block_copy(block: *mut Block) -> *mut Block {
    if block.is_null() || (*block).flags & GLOBAL != 0 {
        return block;
    }
    if (*block).flags & NEEDS_FREE != 0 {
        flags(block).fetch_add(2, SeqCst);
        return block;
    }
    let size = (*(*block).descriptor).size;
    let copy = std::alloc::alloc(layout(size)).cast::<Block>();
    std::ptr::copy_nonoverlapping(block.cast::<u8>(), copy.cast::<u8>(), size);
    (*copy).isa = (&raw const MALLOC_BLOCK).cast();
    (*copy).flags = ((*block).flags & !0xffff) | NEEDS_FREE | 2;
    if (*block).flags & HAS_COPY != 0
        && let Some(copy_captures) = (*(*block).descriptor).copy
    {
        copy_captures(copy, block);
    }
    BLOCKS_ALIVE.fetch_add(1, SeqCst);
    copy
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _Block_release(block: *mut Block) {
    if block.is_null() || (*block).flags & NEEDS_FREE == 0 {
        return;
    }
    let was = flags(block).fetch_sub(2, SeqCst) & 0xffff;
    assert!(was >= 2, "over-release of a block");
    if was == 2 {
        if (*block).flags & HAS_COPY != 0
            && let Some(dispose_captures) = (*(*block).descriptor).dispose
        {
            dispose_captures(block);
        }
        std::alloc::dealloc(block.cast(), layout((*(*block).descriptor).size));
        BLOCKS_ALIVE.fetch_sub(1, SeqCst);
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("the size of a block")
}

/// A handler that Metal keeps until it has called it, or until its command buffer goes.
pub struct Handler(*mut Block);
// SAFETY: Metal calls handlers on threads of its own; that the block may go there is what the code under test promises.
unsafe impl Send for Handler {}
impl Handler {
    pub unsafe fn copy_of(block: *mut Block) -> Handler {
        Handler(_Block_copy(block))
    }
    pub(crate) fn call(&self, argument: Id) {
        // SAFETY: the block is alive while `self` is.
        unsafe { ((*self.0).invoke)(self.0, argument) }
    }
}
impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: `copy_of` took one reference.
        unsafe { _Block_release(self.0) }
    }
}
